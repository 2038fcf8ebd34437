-- Documents that are in no cluster any more. Relies on the leaf's key.
DELETE FROM {cluster_member} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
