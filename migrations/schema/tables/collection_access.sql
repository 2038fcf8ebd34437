CREATE TABLE nearsim_index.collection_access (
    collection_id integer NOT NULL CONSTRAINT collection_access_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    role_name text NOT NULL,
    may_write boolean NOT NULL DEFAULT false,
    granted_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT collection_access_pkey PRIMARY KEY (collection_id, role_name)
);

COMMENT ON TABLE nearsim_index.collection_access IS 'Which role may read which collection under isolation (nearsim access isolation)';
COMMENT ON COLUMN nearsim_index.collection_access.collection_id IS 'The collection';
COMMENT ON COLUMN nearsim_index.collection_access.role_name IS
    'Name of the role, whose members see the collection; it also applies to a role that is created later with this name';
COMMENT ON COLUMN nearsim_index.collection_access.may_write IS
    'Whether the role may also write documents of the collection; this also needs membership in nearsim_writer';
COMMENT ON COLUMN nearsim_index.collection_access.granted_at IS 'When it was granted';
