CREATE TABLE nearsim.profile (
    profile_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id integer NOT NULL CONSTRAINT profile_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT profile_name_key UNIQUE (collection_id, name),
    CONSTRAINT profile_name_given CHECK (name <> '')
);

COMMENT ON TABLE nearsim.profile IS 'A named index configuration of a collection; each generation stores the recipe with which it is built';
COMMENT ON COLUMN nearsim.profile.collection_id IS 'The collection';
COMMENT ON COLUMN nearsim.profile.name IS 'Name, unique in the collection';
COMMENT ON COLUMN nearsim.profile.created_at IS 'When it was created';
