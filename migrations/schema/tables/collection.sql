CREATE TABLE nearsim.collection (
    collection_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL CONSTRAINT collection_name_key UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    purged_at timestamptz,
    CONSTRAINT collection_name_given CHECK (name <> '')
);

COMMENT ON TABLE nearsim.collection IS
    'A named set of documents that are compared with each other: a tenant, a feed, a corpus';
COMMENT ON COLUMN nearsim.collection.name IS 'Name, unique';
COMMENT ON COLUMN nearsim.collection.created_at IS 'When it was created';
COMMENT ON COLUMN nearsim.collection.purged_at IS
    'When texts were last purged from it; a process that cached texts before then discards them';
