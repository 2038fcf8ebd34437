-- name: look_up_anchors
-- What a text that is not in the index would be paired with, if it is alike enough: the anchors of its buckets; the head
-- of the documents with its own features, and what that is paired with. One row of nulls where there are none, no row
-- where the generation does not serve, or texts were purged since features of the collection were last let go.
-- Bounded, and the same plan with any statistics. Relies on the index on (bucket_hash, doc_id), read index-only, on those
-- of the signatures on doc_id and (feature_digest, doc_id), and on those of the pairs.
SELECT found.doc_id, found.sketch, found.feature_digest
FROM (
    SELECT FROM nearsim.generation
    JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
    WHERE generation.generation_id = {generation_id} AND generation.state = 'live'
        AND collection.purged_at IS NOT DISTINCT FROM CAST(%(purged_at)s AS timestamptz)
) AS serving
LEFT JOIN LATERAL (
    WITH twin AS MATERIALIZED (
        SELECT doc_id FROM {signature} WHERE feature_digest = %(digest)s ORDER BY doc_id LIMIT 1
    ), linked AS MATERIALIZED (
        SELECT anchor.doc_id
        FROM unnest(CAST(%(bucket_hashes)s AS bigint[])) AS query (bucket_hash)
        CROSS JOIN LATERAL (
            SELECT doc_id FROM {band} WHERE bucket_hash = query.bucket_hash
            ORDER BY doc_id LIMIT NULLIF(%(bucket_limit)s, 0)
        ) AS anchor
        UNION
        SELECT doc_id FROM twin
        UNION
        SELECT pair.right_id FROM twin CROSS JOIN LATERAL (
            SELECT right_id FROM {similar_pair} WHERE left_id = twin.doc_id OFFSET 0) AS pair
        UNION
        SELECT pair.left_id FROM twin CROSS JOIN LATERAL (
            SELECT left_id FROM {similar_pair} WHERE right_id = twin.doc_id OFFSET 0) AS pair
    )
    SELECT linked.doc_id, head.sketch, head.feature_digest
    FROM linked CROSS JOIN LATERAL (
        SELECT sketch, feature_digest FROM {signature}
        WHERE doc_id = linked.doc_id AND head_id = linked.doc_id LIMIT 1
    ) AS head
) AS found ON true
ORDER BY found.doc_id

-- name: read_twins
-- The documents whose features have some digests, by external id and title, and the place of their digest from 1. The same plan with any
-- statistics. Relies on the index on (feature_digest, doc_id) and document_pkey.
SELECT query.place, twin.doc_id, named.external_id, named.title
FROM unnest(CAST(%(digests)s AS uuid[])) WITH ORDINALITY AS query (digest, place)
CROSS JOIN LATERAL (
    SELECT doc_id FROM {signature} WHERE feature_digest = query.digest ORDER BY doc_id OFFSET 0
) AS twin
CROSS JOIN LATERAL (
    SELECT external_id, title FROM nearsim.document WHERE doc_id = twin.doc_id LIMIT 1
) AS named
ORDER BY twin.doc_id

-- name: hold_stripes
-- Wait for some locks, in the order in which they are given, and hold them until the transaction ends.
SELECT pg_advisory_xact_lock(stripe) FROM unnest(CAST(%(stripes)s AS bigint[])) AS q (stripe)

-- name: read_result_set
-- The revisions of some documents as they are signed, and the sketches of those that are not at the revision given, in
-- one round trip. One row of nulls where none is signed, no row where the generation does not serve, or texts were purged
-- since sketches of the collection were last let go. Relies on the key of the signatures.
SELECT found.doc_id, found.revision, found.sketch
FROM (
    SELECT FROM nearsim.generation
    JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
    WHERE generation.generation_id = {generation_id} AND generation.state = 'live'
        AND collection.purged_at IS NOT DISTINCT FROM CAST(%(purged_at)s AS timestamptz)
) AS serving
LEFT JOIN LATERAL (
    SELECT asked.doc_id, signed.revision,
        CASE WHEN signed.revision <> asked.revision THEN signed.sketch END AS sketch
    FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(revisions)s AS bigint[])) AS asked (doc_id, revision)
    CROSS JOIN LATERAL (
        SELECT revision, sketch FROM {signature} WHERE doc_id = asked.doc_id LIMIT 1) AS signed
) AS found ON true

-- name: read_standing_verdicts
-- The verdicts of a collection that stand, while its generation serves and no text was purged; rows as in
-- read_result_set. Reads the whole table, which holds what people decided one by one.
SELECT verdict.left_id, verdict.right_id, verdict.verdict = 'pinned'
FROM (
    SELECT collection.collection_id FROM nearsim.generation
    JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection USING (collection_id)
    WHERE generation.generation_id = {generation_id} AND generation.state = 'live'
        AND collection.purged_at IS NOT DISTINCT FROM CAST(%(purged_at)s AS timestamptz)
) AS serving
LEFT JOIN nearsim.verdict ON verdict.collection_id = serving.collection_id AND verdict.undone_at IS NULL

-- name: read_doc_ids
-- The documents of some external ids. Relies on the unique index on (collection_id, external_id).
SELECT document.external_id, document.doc_id
FROM unnest(CAST(%(external_ids)s AS text[])) AS asked (external_id)
JOIN nearsim.document ON document.collection_id = %(collection_id)s AND document.external_id = asked.external_id
