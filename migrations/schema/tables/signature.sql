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
) PARTITION BY RANGE (generation_id);
ALTER TABLE nearsim.signature ALTER COLUMN sketch SET STORAGE EXTERNAL;

COMMENT ON TABLE nearsim.signature IS 'Indexed documents: number and digest of their features, sketch, and head (the first document with the same features)';
COMMENT ON COLUMN nearsim.signature.doc_id IS 'The document; the next dispatch removes the row of a deleted document';
COMMENT ON COLUMN nearsim.signature.revision IS 'Revision of the document that was sketched';
COMMENT ON COLUMN nearsim.signature.feature_count IS
    'Number of distinct features; 0 if the text is empty or too short, so that the document matches nothing';
COMMENT ON COLUMN nearsim.signature.feature_digest IS
    'Digest of the fingerprint and the sorted features, equal for equal sets of features';
COMMENT ON COLUMN nearsim.signature.sketch IS 'Sketch, from which bucket hashes are computed and similarities are estimated';
COMMENT ON COLUMN nearsim.signature.numbers_digest IS
    'Sum of the hashes of the runs of digits in the text, equal for texts with the same numbers; 0 for a text without digits';
COMMENT ON COLUMN nearsim.signature.head_id IS
    'The head: the first document with the same features, often the document itself; only heads have bands and pairs';
