-- Digests of some heads that have another head, too: their documents were signed at the same time. Relies on the index
-- on (feature_digest, doc_id).
SELECT feature_digest FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(digests)s AS uuid[])) AS head (own_id, digest)
CROSS JOIN LATERAL (
    SELECT feature_digest FROM {signature}
    WHERE feature_digest = head.digest AND head_id = doc_id AND doc_id <> head.own_id LIMIT 1
) AS other
