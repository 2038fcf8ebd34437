-- Signatures go, and by cascade their pairs. Locked in the order in which who stores pairs locks them, too.
WITH gone AS MATERIALIZED (
    SELECT doc_id FROM {signature} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) ORDER BY doc_id FOR UPDATE
)
DELETE FROM {signature} WHERE doc_id = ANY (ARRAY(SELECT doc_id FROM gone))
