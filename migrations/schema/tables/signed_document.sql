-- Columns of the signatures of large collections that views need, as the signatures are in many tables; small collections share
-- a table. The order of the columns leaves no padding between them. restore_copies creates the indexes.
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
