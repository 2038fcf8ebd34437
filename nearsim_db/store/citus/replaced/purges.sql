-- name: count_traces
-- Numbers of a generation's rows about these documents; band rows are looked up on the nodes, by bucket hashes that were
-- computed again. Relies on the leaves' keys and indexes.
WITH counted AS MATERIALIZED (
    SELECT count(*) AS bands FROM {band} AS band
    JOIN unnest(CAST(%(owners)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS own (doc_id, bucket_hash)
        ON band.bucket_hash = own.bucket_hash AND band.doc_id = own.doc_id
        AND {in_buckets}
)
SELECT (SELECT count(*) FROM {signature} AS signature WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))),
    (SELECT bands FROM counted),
    (SELECT count(*) FROM {stored_pair} AS similar_pair WHERE left_id = ANY(CAST(%(doc_ids)s AS bigint[]))
        OR right_id = ANY(CAST(%(doc_ids)s AS bigint[]))),
    (SELECT count(*) FROM {cluster_member} AS cluster_member WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])))
