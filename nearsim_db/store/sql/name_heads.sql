-- Twins learn who their head is: the smallest doc_id of the same digest. Relies on the index on feature_digest.
WITH twins AS (
    SELECT doc_id, min(doc_id) OVER (PARTITION BY feature_digest) AS first_id
    FROM {signature} WHERE feature_digest IS NOT NULL
)
UPDATE {signature} AS signature SET head_id = twins.first_id
FROM twins WHERE signature.doc_id = twins.doc_id AND signature.head_id IS DISTINCT FROM twins.first_id
