-- Relies on the keys of both tables and on their indexes on (generation_id, head_id, doc_id).
CREATE VIEW nearsim_index.signed WITH (security_invoker = true) AS
SELECT generation_id, doc_id, head_id, revision, feature_count, numbers_digest FROM nearsim_index.signature_shared
UNION ALL
SELECT generation_id, doc_id, head_id, revision, feature_count, numbers_digest FROM nearsim_index.signed_document;

COMMENT ON VIEW nearsim_index.signed IS
    'Internal (used by the views of pairs and documents): nearsim.signature without sketches and digests of features, read from two tables';
