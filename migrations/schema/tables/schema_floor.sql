-- Compatibility of code and schema. A migration that only adds objects does not raise the floor, so processes of the previous
-- version continue. A migration that removes objects which the previous version uses raises the floor.
CREATE TABLE nearsim_index.schema_floor (
    single boolean NOT NULL DEFAULT true CONSTRAINT schema_floor_pkey PRIMARY KEY,
    oldest_revision text NOT NULL,
    baseline_digest text NOT NULL,
    CONSTRAINT schema_floor_one_row CHECK (single),
    CONSTRAINT schema_floor_revision_known CHECK (oldest_revision ~ '^[0-9]{4}$')
);

COMMENT ON TABLE nearsim_index.schema_floor IS 'The oldest code that may work with this schema, and a digest of the files that created it';
COMMENT ON COLUMN nearsim_index.schema_floor.single IS 'Ensures that there is only one row';
COMMENT ON COLUMN nearsim_index.schema_floor.oldest_revision IS 'The running code must know this revision; older code is refused';
COMMENT ON COLUMN nearsim_index.schema_floor.baseline_digest IS
    'SHA-256 of the files in migrations/schema that this database was made from';
