-- Of the twins of some heads the first of each number: what is tied and untied with their head's pairs. Relies on the
-- index on head_id.
SELECT min(doc_id) FROM {signature}
WHERE head_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id <> doc_id
GROUP BY head_id, numbers_digest
