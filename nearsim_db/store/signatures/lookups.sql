-- name: look_up_anchors
-- Documents to compare with a text that is not in the index: anchors of its buckets, the head of documents with equal
-- features, and that head's pairs, in one row: their doc_ids, sketches, digests and sizes of sketches, each packed in
-- the same order. NULLs if there are none; no row if the generation is not live, or if texts were purged from the
-- collection after the caller's cache was filled. Bounded, and the same plan with any statistics. Relies on the index
-- on (bucket_hash, doc_id), index-only, on those of the signatures on doc_id and (feature_digest, doc_id), and on those
-- of the pairs.
SELECT found.doc_ids, found.sketches, found.digests, found.sizes
FROM {serving}
LEFT JOIN LATERAL (
    WITH twin AS MATERIALIZED (
        SELECT doc_id FROM {signature} AS signature WHERE feature_digest = %(digest)s ORDER BY doc_id LIMIT 1
    ), linked AS MATERIALIZED (
        SELECT anchor.doc_id
        FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) AS query (bucket_hash)
        CROSS JOIN LATERAL (
            SELECT doc_id FROM {band} AS band WHERE bucket_hash = query.bucket_hash
            ORDER BY doc_id LIMIT NULLIF(%(bucket_limit)s, 0)
        ) AS anchor
        {with_twin_and_its_pairs}
    )
    {packed_heads}
) AS found ON true

-- name: read_twins
-- Documents with some digests, by external id and title, and the position of their digest from 1. One row of NULLs if
-- there are none; no row if the generation is being dropped, whose rows may be gone. The same plan with any statistics.
-- Relies on the index on (feature_digest, doc_id) and document_pkey.
SELECT found.place, found.doc_id, found.external_id, found.title
FROM (
    SELECT FROM nearsim.generation WHERE generation_id = {generation_id} AND state <> 'abandoned'
) AS kept
LEFT JOIN LATERAL (
    SELECT query.place, twin.doc_id, named.external_id, named.title
    FROM unnest(CAST(%(digests)s AS uuid[])) WITH ORDINALITY AS query (digest, place)
    CROSS JOIN LATERAL (
        SELECT doc_id FROM {signature} AS signature WHERE feature_digest = query.digest ORDER BY doc_id OFFSET 0
    ) AS twin
    CROSS JOIN LATERAL (
        SELECT external_id, title FROM nearsim.document WHERE doc_id = twin.doc_id LIMIT 1
    ) AS named
) AS found ON true
ORDER BY found.doc_id

-- name: read_candidates
-- The first documents with each of some digests, as in read_twins, with the body of one of them if it is requested and
-- in the collection. A deleted document does not count. Relies on the index on (feature_digest, doc_id) and
-- document_pkey. The parameters are in subqueries: otherwise a plan made for few digests seems cheaper, at each call.
SELECT found.place, found.doc_id, found.external_id, found.title, found.body, found.has_text
FROM (
    SELECT FROM nearsim.generation WHERE generation_id = {generation_id} AND state <> 'abandoned'
) AS kept
LEFT JOIN LATERAL (
    SELECT query.place, twin.doc_id, twin.external_id, twin.title, twin.body, twin.has_text
    FROM unnest((SELECT CAST(%(digests)s AS uuid[])), (SELECT CAST(%(unread)s AS bigint[])))
        WITH ORDINALITY AS query (digest, unread, place)
    CROSS JOIN LATERAL (
        SELECT own.doc_id, named.external_id, named.title, CASE WHEN named.has_text THEN named.body END AS body,
            named.has_text
        FROM (
            SELECT doc_id FROM {signature} AS signature WHERE feature_digest = query.digest ORDER BY doc_id OFFSET 0
        ) AS own
        CROSS JOIN LATERAL (
            SELECT external_id, title, body,
                doc_id = query.unread AND collection_id = %(collection_id)s AND body_digest IS NULL AS has_text
            FROM nearsim.document WHERE doc_id = own.doc_id LIMIT 1
        ) AS named
        ORDER BY own.doc_id LIMIT (SELECT CAST(%(most)s AS bigint))
    ) AS twin
) AS found ON true
ORDER BY found.place, found.doc_id

-- name: lock_buckets
-- Record the insertion of a document, whose trigger locks the buckets of the text until the transaction ends; one row, or
-- none if the generation is gone. Relies on generation_pkey.
INSERT INTO nearsim_index.checked_insertion (collection_id, generation_id, external_id, bucket_hashes)
SELECT profile.collection_id, generation.generation_id, %(external_id)s, CAST(%(bucket_hashes)s AS bigint[])
FROM nearsim.generation JOIN nearsim.profile USING (profile_id)
WHERE generation.generation_id = {generation_id}
RETURNING generation_id

-- name: list_unsigned
-- Documents that were inserted after a check, share a bucket with a text and are not signed as they are now; of other
-- generations, whose buckets differ, all that are not signed. The same plan with any statistics. Relies on
-- checked_insertion_buckets and checked_insertion_generation, document_external_id_key and the key of the signatures.
SELECT document.doc_id, document.external_id, document.title
FROM (
    SELECT external_id FROM nearsim_index.checked_insertion
    WHERE bucket_hashes && CAST(%(bucket_hashes)s AS bigint[]) AND generation_id = {generation_id}
    UNION
    SELECT external_id FROM nearsim_index.checked_insertion
    WHERE collection_id = %(collection_id)s
        AND (generation_id < {generation_id} OR generation_id > {generation_id} OR generation_id IS NULL)
) AS checked
CROSS JOIN LATERAL (
    SELECT doc_id, external_id, title, revision FROM nearsim.document
    WHERE collection_id = %(collection_id)s AND document.external_id = checked.external_id AND {is_within_age} LIMIT 1
) AS document
WHERE document.external_id <> %(replaced)s AND NOT EXISTS (
    SELECT FROM {signature} AS signature WHERE doc_id = document.doc_id AND revision = document.revision)
ORDER BY document.doc_id

-- name: read_result_set
-- Revisions of signed documents, and sketches of those whose revision differs from the caller's, in one round trip.
-- One row of NULLs if none is signed; no row if the generation is not live, or if texts were purged from the
-- collection after the caller's cache was filled. Relies on the key of the signatures.
SELECT found.doc_id, found.revision, found.sketch
FROM {serving}
LEFT JOIN LATERAL (
    SELECT requested.doc_id, signed.revision,
        CASE WHEN signed.revision <> requested.revision THEN signed.sketch END AS sketch
    FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(revisions)s AS bigint[])) AS requested (doc_id, revision)
    CROSS JOIN LATERAL (
        SELECT revision, sketch FROM {signature} AS signature WHERE doc_id = requested.doc_id LIMIT 1) AS signed
) AS found ON true

-- name: read_active_verdicts
-- Active verdicts of a collection; rows as in read_result_set. Relies on verdict_collection.
SELECT verdict.left_id, verdict.right_id, verdict.verdict = 'pinned'
FROM {serving}
LEFT JOIN nearsim.verdict ON verdict.collection_id = serving.collection_id AND verdict.undone_at IS NULL

-- name: read_doc_ids
-- doc_ids of some external ids. Relies on document_external_id_key.
SELECT document.external_id, document.doc_id
FROM unnest(CAST(%(external_ids)s AS text[])) AS requested (external_id)
JOIN nearsim.document ON document.collection_id = %(collection_id)s AND document.external_id = requested.external_id
