-- What views need of the signatures of large collections, which are in many tables; small ones share theirs. In this order
-- the columns of a row have no padding between them. Its indexes are those of restore_copies.
CREATE TABLE nearsim_index.signed_document (
    generation_id integer NOT NULL,
    feature_count integer NOT NULL,
    doc_id bigint NOT NULL,
    head_id bigint,
    revision bigint NOT NULL,
    numbers_digest bigint NOT NULL
);

COMMENT ON TABLE nearsim_index.signed_document IS
    'Internal: the signatures of large collections without sketches and digests, which triggers keep equal to nearsim.signature';
