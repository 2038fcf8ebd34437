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
    CONSTRAINT attachment_value_key UNIQUE (parent_id, collection_value),
    CONSTRAINT attachment_of_value CHECK (
        (parent_id IS NULL) = (collection_value IS NULL) AND (parent_id IS NULL OR collection_field IS NOT NULL)),
    CONSTRAINT attachment_trouble_dated CHECK ((trouble IS NULL) = (troubled_at IS NULL))
);

COMMENT ON TABLE nearsim_index.attachment IS
    'Tables of applications that are attached to collections (nearsim table attach); the texts stay in those tables';
COMMENT ON COLUMN nearsim_index.attachment.collection_id IS 'The collection';
COMMENT ON COLUMN nearsim_index.attachment.relation IS 'The table; still valid after it is renamed';
COMMENT ON COLUMN nearsim_index.attachment.id_column IS 'Name of the id column; its values as text are external_id';
COMMENT ON COLUMN nearsim_index.attachment.text_column IS
    'Name of the text column, or the SQL expression that computes the text';
COMMENT ON COLUMN nearsim_index.attachment.title_column IS 'Name of the title column, or an SQL expression';
COMMENT ON COLUMN nearsim_index.attachment.source_column IS 'Name of the source column, or an SQL expression';
COMMENT ON COLUMN nearsim_index.attachment.url_column IS 'Name of the URL column, or an SQL expression';
COMMENT ON COLUMN nearsim_index.attachment.published_at_column IS 'Name of the publication date column';
COMMENT ON COLUMN nearsim_index.attachment.condition IS
    'SQL expression that is true of the rows that are documents; NULL for all rows';
COMMENT ON COLUMN nearsim_index.attachment.given_condition IS
    'The part of the condition that was given with --where, if collection_field adds another one';
COMMENT ON COLUMN nearsim_index.attachment.collection_field IS
    'Name of the column whose values have a collection each; NULL if all rows are in this one';
COMMENT ON COLUMN nearsim_index.attachment.parent_id IS
    'Collection that has the triggers of the table and the rows without a value; NULL if that is this one';
COMMENT ON COLUMN nearsim_index.attachment.collection_value IS
    'The value, as text, whose rows are in this collection; NULL for a collection without a parent';
COMMENT ON COLUMN nearsim_index.attachment.computed IS
    'What is an SQL expression (text, title, source, url, where), each with the names of the columns that it reads';
COMMENT ON COLUMN nearsim_index.attachment.attached_at IS 'When it was attached';
COMMENT ON COLUMN nearsim_index.attachment.wanted_at IS 'When a sweep of the whole table was last requested';
COMMENT ON COLUMN nearsim_index.attachment.swept_at IS
    'Start of the last completed sweep; if earlier than wanted_at, another sweep is due';
COMMENT ON COLUMN nearsim_index.attachment.sweep_seconds IS 'Duration of that sweep';
COMMENT ON COLUMN nearsim_index.attachment.unusable IS
    'Number of rows it skipped because their id is NULL, empty or longer than 1,024 bytes';
COMMENT ON COLUMN nearsim_index.attachment.detaching IS
    'Whether the table is being detached: texts are copied, and changes are no longer read';
COMMENT ON COLUMN nearsim_index.attachment.trouble IS 'Why changes of the table are not indexed; NULL if they are';
COMMENT ON COLUMN nearsim_index.attachment.troubled_at IS 'Since when, as far as workers know';
