-- Signatures go, and by cascade their pairs.
DELETE FROM {signature} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
