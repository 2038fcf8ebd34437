CREATE TABLE nearsim.signature (
    generation_id integer NOT NULL,
    doc_id bigint NOT NULL,
    revision bigint NOT NULL,
    feature_count integer NOT NULL,
    feature_digest uuid,
    sketch bytea,
    numbers_digest bigint NOT NULL,
    head_id bigint,
    CONSTRAINT signature_features_or_none CHECK
        ((feature_count > 0) = (feature_digest IS NOT NULL)
         AND (feature_count > 0) = (sketch IS NOT NULL)
         AND (feature_count > 0) = (head_id IS NOT NULL)),
    CONSTRAINT signature_head_first CHECK (head_id <= doc_id)
) PARTITION BY LIST (generation_id);
ALTER TABLE nearsim.signature ALTER COLUMN sketch SET STORAGE EXTERNAL;

COMMENT ON TABLE nearsim.signature IS
    'A document in a generation: its features counted and digested, its sketch, the head of its twins';
COMMENT ON COLUMN nearsim.signature.generation_id IS
    'The generation';
COMMENT ON COLUMN nearsim.signature.doc_id IS
    'The document; it may be gone, until its index rows are taken out';
COMMENT ON COLUMN nearsim.signature.revision IS
    'The revision of the document that was signed';
COMMENT ON COLUMN nearsim.signature.feature_count IS
    'How many distinct features it has; 0 where its text is empty or too short, and it is like nothing';
COMMENT ON COLUMN nearsim.signature.feature_digest IS
    'Digest of the fingerprint and the sorted features: equal for equal feature sets';
COMMENT ON COLUMN nearsim.signature.sketch IS
    'The summary of the features that bands are cut from and similarity is estimated with';
COMMENT ON COLUMN nearsim.signature.numbers_digest IS
    'Sum of the hashes of the runs of digits in the text, 0 for none: equal where the numbers are the same';
COMMENT ON COLUMN nearsim.signature.head_id IS
    'The first document with the same features, which alone has bands and pairs; often itself';
