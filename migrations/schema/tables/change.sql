-- Changes have no order, so they need no key. Without a key, a COPY into document is about 10 % faster.
CREATE TABLE nearsim.change (
    doc_id bigint,
    revision bigint,
    changed_at timestamptz NOT NULL DEFAULT now(),
    collection_id integer,
    stage text,
    external_id text,
    collection_value text,
    CONSTRAINT change_one_or_everything CHECK (num_nonnulls(doc_id, external_id) <= num_nonnulls(collection_id)),
    CONSTRAINT change_stage_known CHECK (stage = 'link')
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE nearsim.change REPLICA IDENTITY FULL;

COMMENT ON TABLE nearsim.change IS 'Captured writes that are not yet dispatched to the work queue; triggers only append here';
COMMENT ON COLUMN nearsim.change.doc_id IS 'The document that was written';
COMMENT ON COLUMN nearsim.change.revision IS
    'Revision of the written document; NULL if it was deleted or left the collection';
COMMENT ON COLUMN nearsim.change.changed_at IS 'When it was written';
COMMENT ON COLUMN nearsim.change.collection_id IS 'The collection; NULL if the change concerns the documents of all collections';
COMMENT ON COLUMN nearsim.change.stage IS
    'link if only clusters have to be updated, after a verdict; NULL if the document itself was written';
COMMENT ON COLUMN nearsim.change.external_id IS
    'external_id of a row in the attached table; if this and doc_id are NULL, the change concerns the whole collection';
COMMENT ON COLUMN nearsim.change.collection_value IS
    'Value, present or former, of that row in the column by whose values rows are distributed to collections; NULL if there is none';
