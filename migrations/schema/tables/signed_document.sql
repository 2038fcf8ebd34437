-- The signatures of large collections are in many tables; this table has the columns of all of them that views need. The
-- signatures of small collections are in one table anyway. The order of the columns leaves no padding between them.
-- restore_copies creates the indexes.
CREATE TABLE nearsim_index.signed_document (
    generation_id integer NOT NULL,
    feature_count integer NOT NULL,
    doc_id bigint NOT NULL,
    head_id bigint,
    revision bigint NOT NULL,
    numbers_digest bigint NOT NULL
);

COMMENT ON TABLE nearsim_index.signed_document IS
    'Internal: copies of the signatures of large collections, without sketches and digests; triggers keep them equal to nearsim.signature';
