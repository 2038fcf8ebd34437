-- name: look_up_anchors
-- The heads to compare with a text that is not in the index: the anchors of its buckets, the head of documents with equal
-- features, and the documents that are paired with that head. Returns one row with doc_ids, sketches, digests and sizes of
-- sketches, each packed in the same order, or NULLs if there are no heads. Returns no row if the generation is not live, or
-- if texts were purged from the collection after the caller filled its cache. The work is bounded, and the plan is the same
-- whatever the statistics. Relies on index-only scans of the index on (bucket_hash, doc_id), on the indexes of the
-- signatures on doc_id and (feature_digest, doc_id), and on the indexes of the pairs.
SELECT packed.doc_ids, packed.sketches, packed.digests, packed.sizes
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
) AS packed ON true

-- name: read_twins
-- The documents with these digests: the place of the digest, from 1, with doc_id, external id and title. Returns one row of
-- NULLs if there are none, and no row if the generation is being dropped, because some of its rows may be deleted already.
-- The plan is the same whatever the statistics. Relies on the index on (feature_digest, doc_id) and document_pkey.
SELECT twins.place, twins.doc_id, twins.external_id, twins.title
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
) AS twins ON true
ORDER BY twins.doc_id

-- name: read_candidates
-- The first documents with each of these digests, as read_twins returns them. For the document in `unread`, the body is
-- returned too, provided that the document is in the collection and its text is not in an attached table. Deleted documents
-- do not count. Relies on the index on (feature_digest, doc_id) and document_pkey. The parameters are in subqueries, because
-- PostgreSQL would otherwise plan each call again: a plan for the few digests of a call seems cheaper to it.
SELECT twins.place, twins.doc_id, twins.external_id, twins.title, twins.body, twins.has_text
FROM (
    SELECT FROM nearsim.generation WHERE generation_id = {generation_id} AND state <> 'abandoned'
) AS kept
LEFT JOIN LATERAL (
    SELECT query.place, twin.doc_id, twin.external_id, twin.title, twin.body, twin.has_text
    FROM unnest((SELECT CAST(%(digests)s AS uuid[])), (SELECT CAST(%(unread)s AS bigint[])))
        WITH ORDINALITY AS query (digest, unread, place)
    CROSS JOIN LATERAL (
        SELECT signed.doc_id, named.external_id, named.title, CASE WHEN named.has_text THEN named.body END AS body,
            named.has_text
        FROM (
            SELECT doc_id FROM {signature} AS signature WHERE feature_digest = query.digest ORDER BY doc_id OFFSET 0
        ) AS signed
        CROSS JOIN LATERAL (
            SELECT external_id, title, body,
                doc_id = query.unread AND collection_id = %(collection_id)s AND body_digest IS NULL AS has_text
            FROM nearsim.document WHERE doc_id = signed.doc_id LIMIT 1
        ) AS named
        ORDER BY signed.doc_id LIMIT (SELECT CAST(%(max_twins)s AS bigint))
    ) AS twin
) AS twins ON true
ORDER BY twins.place, twins.doc_id

-- name: lock_buckets
-- Record a checked insertion; the trigger of the table locks the buckets of the text until the transaction ends. Returns one
-- row, or none if the generation was dropped. Relies on generation_pkey.
INSERT INTO nearsim_index.checked_insertion (collection_id, generation_id, external_id, bucket_hashes)
SELECT profile.collection_id, generation.generation_id, %(external_id)s, CAST(%(bucket_hashes)s AS bigint[])
FROM nearsim.generation JOIN nearsim.profile USING (profile_id)
WHERE generation.generation_id = {generation_id}
RETURNING generation_id

-- name: list_unsigned
-- Documents that were inserted after a check, share a bucket with a text, and have no signature for their present revision.
-- Documents whose check used another generation are all included, because its buckets cannot be compared. The plan is the
-- same whatever the statistics. Relies on checked_insertion_buckets, checked_insertion_generation, document_external_id_key
-- and the key of the signatures.
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
-- The signed revisions of documents, each with the sketch if the revision differs from the caller's, in one round trip.
-- Returns one row of NULLs if none of the documents is signed, and no row if the generation is not live, or if texts were
-- purged from the collection after the caller filled its cache. Relies on the key of the signatures.
SELECT signature.doc_id, signature.revision, signature.sketch
FROM {serving}
LEFT JOIN LATERAL (
    SELECT requested.doc_id, signed.revision,
        CASE WHEN signed.revision <> requested.revision THEN signed.sketch END AS sketch
    FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(revisions)s AS bigint[])) AS requested (doc_id, revision)
    CROSS JOIN LATERAL (
        SELECT revision, sketch FROM {signature} AS signature WHERE doc_id = requested.doc_id LIMIT 1) AS signed
) AS signature ON true

-- name: read_active_verdicts
-- The verdicts of a collection that are in force; one row of NULLs, or no row, in the same cases as read_result_set. Relies
-- on verdict_collection.
SELECT verdict.left_id, verdict.right_id, verdict.verdict = 'pinned'
FROM {serving}
LEFT JOIN nearsim.verdict ON verdict.collection_id = serving.collection_id AND verdict.undone_at IS NULL

-- name: read_doc_ids
-- The doc_ids of documents with these external ids. Relies on document_external_id_key.
SELECT document.external_id, document.doc_id
FROM unnest(CAST(%(external_ids)s AS text[])) AS requested (external_id)
JOIN nearsim.document ON document.collection_id = %(collection_id)s AND document.external_id = requested.external_id
