-- Which versions of the code may work with this schema. A migration that only adds leaves the row as it is, so that processes
-- of the version before go on; one that takes away what these still use raises it.
CREATE TABLE nearsim.schema_floor (
    single boolean NOT NULL DEFAULT true CONSTRAINT schema_floor_pkey PRIMARY KEY,
    oldest_revision text NOT NULL,
    baseline_digest text NOT NULL,
    CONSTRAINT schema_floor_one_row CHECK (single),
    CONSTRAINT schema_floor_revision_known CHECK (oldest_revision ~ '^[0-9]{4}$')
);

COMMENT ON TABLE nearsim.schema_floor IS
    'Which code may work with this schema: all that was written for it, or for an older one down to this';
COMMENT ON COLUMN nearsim.schema_floor.single IS 'There is one row';
COMMENT ON COLUMN nearsim.schema_floor.oldest_revision IS 'The oldest revision that code must have been written for';
COMMENT ON COLUMN nearsim.schema_floor.baseline_digest IS
    'SHA-256 of the files in migrations/schema that this database was made from';
