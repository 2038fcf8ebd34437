-- name: read_pair_evidence
-- What the index stores about two documents as a pair and, for each of them, the state that keeps it from being compared.
-- Relies on the same indexes as nearsim.why.
SELECT pair.is_pair, pair.are_twins, pair.similarity, pair.estimate, pair.shared_bands, pair.numbers_differ,
    pair.numbers_only_left, pair.numbers_only_right, pair.verified_at, pair.verdict, pair.verdict_by, pair.verdict_why,
    pair.same_cluster, nearsim.is_candidate(pair.recipe, pair.bands), compared.are_linked,
    nearsim.document_state(pair.generation_id, pair.left_id), nearsim.document_state(pair.generation_id, pair.right_id),
    pair.verified
FROM nearsim.why_by_doc_id(CAST(%(left_id)s AS bigint), CAST(%(right_id)s AS bigint), CAST(%(profile)s AS text)) AS pair
LEFT JOIN nearsim.compare_sketches(pair.generation_id, pair.left_id, pair.right_id) AS compared ON true

-- name: read_shared_buckets
-- The buckets that two documents share: band, hash, number of heads, and the place, from 1, of the earlier document in the
-- bucket. The bucket links the two documents if this place is within the bucket limit. Relies on the leaf's keys and on the
-- index on (bucket_hash, doc_id).
SELECT CAST((shared.bucket_hash >> 56) & 255 AS integer), lpad(to_hex(shared.bucket_hash), 16, '0'),
    (SELECT count(*) FROM {band} AS member WHERE member.bucket_hash = shared.bucket_hash),
    (SELECT count(*) FROM {band} AS member
        WHERE member.bucket_hash = shared.bucket_hash AND member.doc_id <= least(left_signature.head_id, right_signature.head_id))
FROM {shared_buckets}
WHERE generation.generation_id = {generation_id}
ORDER BY 1, 2
