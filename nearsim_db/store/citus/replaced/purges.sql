-- name: count_traces
-- Rows that a generation holds of some documents, band rows by their recomputed keys on the nodes. Relies on the leaves'
-- keys and indexes.
WITH found AS MATERIALIZED (
    SELECT count(*) AS bands FROM {band} AS band
    JOIN unnest(CAST(%(owners)s AS bigint[]), CAST(%(bucket_hashes)s AS bigint[])) AS own (doc_id, bucket_hash)
        ON band.bucket_hash = own.bucket_hash AND band.doc_id = own.doc_id
        AND {in_buckets}
)
SELECT (SELECT count(*) FROM {signature} AS signature WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))),
    (SELECT bands FROM found),
    (SELECT count(*) FROM {stored_pair} AS similar_pair WHERE left_id = ANY(CAST(%(doc_ids)s AS bigint[]))
        OR right_id = ANY(CAST(%(doc_ids)s AS bigint[]))),
    (SELECT count(*) FROM {cluster_member} AS cluster_member WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])))
