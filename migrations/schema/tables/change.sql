-- Nothing orders changes, so they need no key; without one a COPY into document takes a tenth less.
CREATE TABLE nearsim.change (
    collection_id integer,
    doc_id bigint,
    changed_at timestamptz NOT NULL DEFAULT now(),
    stage text,
    external_id text,
    CONSTRAINT change_one_or_everything CHECK (num_nonnulls(doc_id, external_id) <= num_nonnulls(collection_id)),
    CONSTRAINT change_stage_known CHECK (stage = 'link')
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE nearsim.change REPLICA IDENTITY FULL;

COMMENT ON TABLE nearsim.change IS
    'Writes to document that no index has taken in yet; triggers append and do nothing else';
COMMENT ON COLUMN nearsim.change.collection_id IS
    'The collection; NULL for all documents there are';
COMMENT ON COLUMN nearsim.change.doc_id IS
    'The document that was written';
COMMENT ON COLUMN nearsim.change.changed_at IS
    'When it was written';
COMMENT ON COLUMN nearsim.change.stage IS
    'link where only clusters are to be put right, after a verdict; null where the document itself was written';
COMMENT ON COLUMN nearsim.change.external_id IS
    'The id of a row in the table that the collection follows; with neither this nor doc_id all of it is meant';
