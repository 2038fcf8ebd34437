-- Documents whose features did not change: only the revision, and the numbers, move on.
UPDATE {signature} AS signature SET revision = now_is.revision, numbers_digest = now_is.numbers_digest
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(revisions)s AS bigint[]), CAST(%(numbers)s AS bigint[]))
    AS now_is (doc_id, revision, numbers_digest)
WHERE signature.doc_id = now_is.doc_id
