-- Each of these digests has its smallest doc_id as head. Relies on the index on feature_digest.
WITH first AS (
    SELECT feature_digest, min(doc_id) AS head_id FROM {signature}
    WHERE feature_digest = ANY(CAST(%(digests)s AS uuid[])) GROUP BY feature_digest
)
UPDATE {signature} AS signature SET head_id = first.head_id
FROM first WHERE signature.feature_digest = first.feature_digest AND signature.head_id <> first.head_id
