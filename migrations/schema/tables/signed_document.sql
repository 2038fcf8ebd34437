-- What views need of the signatures of large collections, which are in many tables; small ones share theirs. In this order
-- the columns of a row have no padding between them.
CREATE TABLE nearsim_index.signed_document (
    generation_id integer NOT NULL,
    feature_count integer NOT NULL,
    doc_id bigint NOT NULL,
    head_id bigint,
    revision bigint NOT NULL,
    numbers_digest bigint NOT NULL,
    CONSTRAINT signed_document_pkey PRIMARY KEY (generation_id, doc_id)
);
CREATE INDEX signed_document_head ON nearsim_index.signed_document (generation_id, head_id, doc_id);

COMMENT ON TABLE nearsim_index.signed_document IS
    'Internal: the signatures of large collections without sketches and digests, which triggers keep equal to nearsim.signature';
