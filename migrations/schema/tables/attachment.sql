-- A collection that follows a table of an application. Its texts stay in that table; what is small is copied.
CREATE TABLE nearsim.attachment (
    collection_id integer CONSTRAINT attachment_pkey PRIMARY KEY CONSTRAINT attachment_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    relation regclass NOT NULL,
    id_column text NOT NULL,
    text_column text NOT NULL,
    title_column text,
    source_column text,
    url_column text,
    published_at_column text,
    attached_at timestamptz NOT NULL DEFAULT now(),
    wanted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    swept_at timestamptz,
    sweep_seconds double precision NOT NULL DEFAULT 0,
    unusable bigint NOT NULL DEFAULT 0,
    detaching boolean NOT NULL DEFAULT false,
    trouble text,
    troubled_at timestamptz,
    CONSTRAINT attachment_trouble_dated CHECK ((trouble IS NULL) = (troubled_at IS NULL))
);

COMMENT ON TABLE nearsim.attachment IS
    'Which collections follow a table of an application, that keeps their texts (nearsim attach)';
COMMENT ON COLUMN nearsim.attachment.collection_id IS 'The collection';
COMMENT ON COLUMN nearsim.attachment.relation IS 'The table, under whatever name it has now';
COMMENT ON COLUMN nearsim.attachment.id_column IS 'Its column of ids, which as text are external_id';
COMMENT ON COLUMN nearsim.attachment.text_column IS 'Its column of texts';
COMMENT ON COLUMN nearsim.attachment.title_column IS 'Its column of titles';
COMMENT ON COLUMN nearsim.attachment.source_column IS 'Its column of sources';
COMMENT ON COLUMN nearsim.attachment.url_column IS 'Its column of addresses';
COMMENT ON COLUMN nearsim.attachment.published_at_column IS 'Its column of dates of publication';
COMMENT ON COLUMN nearsim.attachment.attached_at IS 'Since when it is followed';
COMMENT ON COLUMN nearsim.attachment.wanted_at IS 'When a sweep of the whole table was last asked for';
COMMENT ON COLUMN nearsim.attachment.swept_at IS
    'When the last sweep that was finished began; earlier than wanted_at, another is to come';
COMMENT ON COLUMN nearsim.attachment.sweep_seconds IS 'How long that took';
COMMENT ON COLUMN nearsim.attachment.unusable IS
    'How many rows it left out because their id is NULL, empty or longer than 1,024 bytes';
COMMENT ON COLUMN nearsim.attachment.detaching IS 'Whether the texts are being copied and the table is not followed any more';
COMMENT ON COLUMN nearsim.attachment.trouble IS 'Why the table cannot be followed now';
COMMENT ON COLUMN nearsim.attachment.troubled_at IS 'When that was last found';
