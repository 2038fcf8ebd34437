-- Some documents and how they are signed: whether each is there, is inside the window, its signature, and the first
-- document with the digest of that. Relies on the keys and on the index on (feature_digest, doc_id).
SELECT asked.doc_id, document.doc_id IS NOT NULL, coalesce(
        coalesce(document.published_at, document.created_at)
            >= coalesce(now() - make_interval(secs => CAST(%(age)s AS double precision)), '-infinity'), false),
    document.revision, signed.doc_id IS NOT NULL, signed.revision, signed.feature_count, signed.feature_digest,
    signed.sketch, signed.numbers_digest, signed.head_id, (
        SELECT twin.doc_id FROM {signature} AS twin WHERE twin.feature_digest = signed.feature_digest
        ORDER BY twin.feature_digest, twin.doc_id LIMIT 1)
FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS asked (doc_id)
LEFT JOIN nearsim.document AS document
    ON document.doc_id = asked.doc_id AND document.collection_id = %(collection_id)s
LEFT JOIN {signature} AS signed ON signed.doc_id = asked.doc_id
ORDER BY asked.doc_id
