-- Tables attached to collections. The texts stay in the attached table; small columns are copied.
CREATE TABLE nearsim_index.attachment (
    collection_id integer CONSTRAINT attachment_pkey PRIMARY KEY CONSTRAINT attachment_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    relation regclass NOT NULL,
    id_column text NOT NULL,
    text_column text NOT NULL,
    title_column text,
    source_column text,
    url_column text,
    published_at_column text,
    condition text,
    given_condition text,
    collection_field text,
    parent_id integer CONSTRAINT attachment_parent_fkey REFERENCES nearsim_index.attachment,
    collection_value text COLLATE "C",
    computed jsonb NOT NULL DEFAULT '{}',
    attached_at timestamptz NOT NULL DEFAULT now(),
    wanted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    swept_at timestamptz,
    sweep_seconds double precision NOT NULL DEFAULT 0,
    unusable bigint NOT NULL DEFAULT 0,
    detaching boolean NOT NULL DEFAULT false,
    trouble text,
    troubled_at timestamptz,
    mark_column text,
    marked_at timestamptz,
    mark_seconds double precision NOT NULL DEFAULT 0,
    mark_trouble text,
    CONSTRAINT attachment_value_key UNIQUE (parent_id, collection_value),
    CONSTRAINT attachment_of_value CHECK (
        (parent_id IS NULL) = (collection_value IS NULL) AND (parent_id IS NULL OR collection_field IS NOT NULL)),
    CONSTRAINT attachment_trouble_dated CHECK ((trouble IS NULL) = (troubled_at IS NULL))
);

COMMENT ON TABLE nearsim_index.attachment IS
    'Application tables that are attached to collections (nearsim table attach); the texts stay in those tables';
COMMENT ON COLUMN nearsim_index.attachment.collection_id IS 'The collection';
COMMENT ON COLUMN nearsim_index.attachment.relation IS 'The table; still valid after it is renamed';
COMMENT ON COLUMN nearsim_index.attachment.id_column IS 'Name of the id column; its values, as text, are the external_ids of the documents';
COMMENT ON COLUMN nearsim_index.attachment.text_column IS
    'Name of the text column, or the SQL expression that computes the text';
COMMENT ON COLUMN nearsim_index.attachment.title_column IS 'Name of the title column, or an SQL expression';
COMMENT ON COLUMN nearsim_index.attachment.source_column IS 'Name of the source column, or an SQL expression';
COMMENT ON COLUMN nearsim_index.attachment.url_column IS 'Name of the URL column, or an SQL expression';
COMMENT ON COLUMN nearsim_index.attachment.published_at_column IS 'Name of the publication date column';
COMMENT ON COLUMN nearsim_index.attachment.condition IS
    'SQL condition for the rows that are documents; NULL if all rows are';
COMMENT ON COLUMN nearsim_index.attachment.given_condition IS
    'The condition of the option --where, if collection_field adds another condition to it';
COMMENT ON COLUMN nearsim_index.attachment.collection_field IS
    'Name of the column by whose values rows are distributed to collections; NULL if all rows belong to this collection';
COMMENT ON COLUMN nearsim_index.attachment.parent_id IS
    'The collection to which the triggers of the table, and its rows without a value, belong; NULL if it is this collection itself';
COMMENT ON COLUMN nearsim_index.attachment.collection_value IS
    'Rows with this value, as text, in the column collection_field belong to this collection; NULL for a collection without a parent';
COMMENT ON COLUMN nearsim_index.attachment.computed IS
    'For each of text, title, source, url and where that is an SQL expression: the names of the columns that it reads';
COMMENT ON COLUMN nearsim_index.attachment.attached_at IS 'When the table was attached';
COMMENT ON COLUMN nearsim_index.attachment.wanted_at IS 'When a sweep of the whole table was last requested';
COMMENT ON COLUMN nearsim_index.attachment.swept_at IS
    'Start of the last completed sweep; if earlier than wanted_at, another sweep is due';
COMMENT ON COLUMN nearsim_index.attachment.sweep_seconds IS 'Duration of the last completed sweep, in seconds';
COMMENT ON COLUMN nearsim_index.attachment.unusable IS
    'Number of rows that the last completed sweep skipped because their id is NULL, empty or longer than 1,024 bytes';
COMMENT ON COLUMN nearsim_index.attachment.detaching IS
    'Whether the table is being detached: its texts are being copied, and its changes are no longer read';
COMMENT ON COLUMN nearsim_index.attachment.trouble IS 'Reason why changes of the table are not indexed; NULL if they are';
COMMENT ON COLUMN nearsim_index.attachment.troubled_at IS 'When a worker first noticed this; NULL if changes are indexed';
COMMENT ON COLUMN nearsim_index.attachment.mark_column IS
    'Name of the column into which workers write the id of the document to keep instead of each duplicate; NULL if there is none';
COMMENT ON COLUMN nearsim_index.attachment.marked_at IS 'Start of the last completed pass that wrote this column';
COMMENT ON COLUMN nearsim_index.attachment.mark_seconds IS 'Duration of the last completed pass, in seconds';
COMMENT ON COLUMN nearsim_index.attachment.mark_trouble IS 'Reason why the last pass failed; NULL if it did not';
