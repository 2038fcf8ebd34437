-- All rows of some documents go from a generation that nobody works on; reads the band table from end to end.
WITH bands AS (
    DELETE FROM {band} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING doc_id
), pairs AS (
    DELETE FROM {similar_pair} WHERE left_id = ANY(CAST(%(doc_ids)s AS bigint[]))
        OR right_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING left_id
), members AS (
    DELETE FROM {cluster_member} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING doc_id
), signatures AS (
    DELETE FROM {signature} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) RETURNING doc_id
)
SELECT (SELECT count(*) FROM signatures), (SELECT count(*) FROM bands), (SELECT count(*) FROM pairs),
    (SELECT count(*) FROM members)
