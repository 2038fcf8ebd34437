-- name: count_corpus
-- Counts of a collection: documents, documents with a title, with a source and with a date, and sources; the first and the
-- last date; pins and vetoes in force. Reads all documents of the collection; relies on verdict_collection.
SELECT count(*), count(title), count(source), count(published_at), count(DISTINCT source),
    to_char(min(published_at) FILTER (WHERE isfinite(published_at)) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'),
    to_char(max(published_at) FILTER (WHERE isfinite(published_at)) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'),
    (SELECT count(*) FROM nearsim.verdict
        WHERE collection_id = %(collection_id)s AND verdict = 'pinned' AND undone_at IS NULL),
    (SELECT count(*) FROM nearsim.verdict
        WHERE collection_id = %(collection_id)s AND verdict = 'vetoed' AND undone_at IS NULL)
FROM nearsim.document WHERE collection_id = %(collection_id)s

-- name: count_similarities
-- A histogram of stored pairs over equal steps of similarity from `min_similarity` to 1, with steps numbered from 0: the
-- number of pairs with equal numbers, and with different numbers. Reads all pairs, and all signatures twice.
SELECT greatest(least(width_bucket(pair.similarity, %(min_similarity)s, 1, %(steps)s), %(steps)s), 1) - 1 AS step,
    count(*) FILTER (WHERE l.numbers_digest = r.numbers_digest), count(*) FILTER (WHERE l.numbers_digest <> r.numbers_digest)
FROM {similar_pair} AS pair
JOIN {signature} AS l ON l.doc_id = pair.left_id
JOIN {signature} AS r ON r.doc_id = pair.right_id
GROUP BY step

-- name: read_cluster_facts
-- Measures that show how suspicious each cluster is: chained members, which are not a pair with the survivor; mean and
-- lowest similarity to the survivor (1 for its twins); members whose numbers differ; sources; time span. If the survivor was
-- deleted, the first member takes its place. Reads members, signatures and documents once, and pairs by key or all of them.
WITH member AS MATERIALIZED (
    SELECT member.cluster_id, member.doc_id, member.is_survivor, signature.head_id, signature.numbers_digest,
        document.source, CASE WHEN isfinite(document.published_at) THEN document.published_at END AS published_at
    FROM {cluster_member} AS member
    JOIN {signature} AS signature USING (doc_id)
    JOIN nearsim.document USING (doc_id)
), survivor AS ({survivor_of_members})
SELECT member.cluster_id, survivor.doc_id, count(*),
    count(*) FILTER (WHERE member.doc_id <> survivor.doc_id AND likeness.similarity IS NULL),
    avg(likeness.similarity) FILTER (WHERE member.doc_id <> survivor.doc_id),
    min(likeness.similarity) FILTER (WHERE member.doc_id <> survivor.doc_id),
    count(*) FILTER (WHERE member.numbers_digest <> survivor.numbers_digest),
    count(DISTINCT member.source),
    date_part('epoch', max(member.published_at)) - date_part('epoch', min(member.published_at))
FROM {members_like_survivor}
GROUP BY member.cluster_id, survivor.doc_id
HAVING count(*) > 1

-- name: read_cluster_details
-- The first members of each of these clusters: the survivor, then chained members, then the members that are least similar
-- to the survivor. Relies on the leaf's index on (cluster_id, is_survivor, doc_id) and on the primary keys.
WITH member AS MATERIALIZED (
    SELECT member.cluster_id, member.doc_id, member.is_survivor, signature.head_id, signature.numbers_digest
    FROM {cluster_member} AS member
    JOIN {signature} AS signature USING (doc_id)
    WHERE member.cluster_id = ANY(CAST(%(cluster_ids)s AS bigint[]))
        AND EXISTS (SELECT FROM nearsim.document WHERE document.doc_id = member.doc_id)
), survivor AS ({survivor_of_members}), ranked AS (
    SELECT member.cluster_id, member.doc_id, member.doc_id = survivor.doc_id AS survives, likeness.similarity,
        member.numbers_digest <> survivor.numbers_digest AS numbers_differ,
        row_number() OVER (
            PARTITION BY member.cluster_id
            ORDER BY member.doc_id <> survivor.doc_id, likeness.similarity NULLS FIRST, member.doc_id
        ) AS place
    FROM {members_like_survivor}
)
SELECT ranked.cluster_id, document.external_id, document.title, document.source,
    to_char(document.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'), document.url, ranked.survives, ranked.similarity,
    ranked.numbers_differ
FROM ranked
JOIN nearsim.document USING (doc_id)
WHERE ranked.place <= %(members)s
ORDER BY ranked.cluster_id, ranked.place

-- name: count_sources
-- The sources of a collection, sorted by the number of clustered documents: documents, clustered documents, clusters whose
-- first document is from the source, and survivors; and the number of all named sources. For a live generation. Reads
-- documents and members twice.
SELECT document.source, count(*), count(member.doc_id), count(first.first_id),
    count(*) FILTER (WHERE member.is_survivor), count(document.source) OVER ()
FROM nearsim.document
LEFT JOIN {cluster_member} AS member USING (doc_id)
LEFT JOIN (
    SELECT DISTINCT first_id FROM nearsim.first_publications WHERE generation_id = {generation_id}
) AS first ON first.first_id = document.doc_id
WHERE document.collection_id = %(collection_id)s
GROUP BY document.source
ORDER BY count(member.doc_id) DESC, count(*) DESC, document.source COLLATE "C"
LIMIT %(amount)s

-- name: count_source_pairs
-- Pairs by their two sources, the name that sorts first on the left: the number of pairs, how often each source published
-- first and by how much (median), how often both published at once, and the total number of rows. Pairs within one source
-- count for the left side. Stored pairs count, and each twin with its head, but not pairs of two twins. Reads pairs,
-- signatures and documents.
WITH pair AS (
    SELECT left_id, right_id FROM {similar_pair} AS similar_pair
    UNION ALL
    SELECT head_id, doc_id FROM {signature} AS signature WHERE head_id <> doc_id
), dated AS MATERIALIZED (
    SELECT
        CASE WHEN ordered.is_ordered THEN a.source ELSE b.source END COLLATE "C" AS smaller,
        CASE WHEN ordered.is_ordered THEN b.source ELSE a.source END COLLATE "C" AS larger,
        CASE WHEN a.source IS NOT DISTINCT FROM b.source THEN abs(later.seconds)
            WHEN ordered.is_ordered THEN later.seconds ELSE - later.seconds END AS delay
    FROM pair
    JOIN nearsim.document AS a ON a.doc_id = pair.left_id
    JOIN nearsim.document AS b ON b.doc_id = pair.right_id
    CROSS JOIN LATERAL (
        SELECT coalesce(a.source COLLATE "C" <= b.source COLLATE "C", b.source IS NULL)
    ) AS ordered (is_ordered)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN isfinite(a.published_at) AND isfinite(b.published_at)
            THEN date_part('epoch', b.published_at) - date_part('epoch', a.published_at) END
    ) AS later (seconds)
)
SELECT smaller, larger, count(*),
    count(*) FILTER (WHERE delay > 0), percentile_cont(0.5) WITHIN GROUP (ORDER BY delay) FILTER (WHERE delay > 0),
    count(*) FILTER (WHERE delay < 0), percentile_cont(0.5) WITHIN GROUP (ORDER BY - delay) FILTER (WHERE delay < 0),
    count(*) FILTER (WHERE delay = 0), count(*) OVER ()
FROM dated
GROUP BY smaller, larger
ORDER BY count(*) DESC, smaller, larger
LIMIT %(amount)s

-- name: count_over_time
-- Documents with a date, and how many of them were published after the first document of their cluster, in equal steps of
-- time. The earliest hundredth counts in the first step, the latest hundredth in the last step. Returns for each step its
-- beginning as text, the two counts, and the beginning and end of all steps, as seconds and the end also as text. For a live
-- generation. Reads documents and members.
WITH dated AS MATERIALIZED (
    SELECT date_part('epoch', document.published_at) AS at, copy.doc_id IS NOT NULL AS is_copy
    FROM nearsim.document
    LEFT JOIN (
        SELECT doc_id FROM nearsim.first_publications WHERE generation_id = {generation_id}
    ) AS copy USING (doc_id)
    WHERE document.collection_id = %(collection_id)s AND isfinite(document.published_at)
), span AS MATERIALIZED (
    SELECT bounds[1] AS first, greatest(bounds[2], bounds[1] + 60) AS last
    FROM (SELECT percentile_disc(ARRAY[0.01, 0.99]) WITHIN GROUP (ORDER BY at) AS bounds FROM dated) AS percentiles
    WHERE bounds[1] IS NOT NULL
), counted AS (
    SELECT least(greatest(width_bucket(at, first, last, %(steps)s), 1), %(steps)s) AS step, count(*) AS documents,
        count(*) FILTER (WHERE is_copy) AS copies
    FROM dated CROSS JOIN span GROUP BY 1
)
SELECT to_char(to_timestamp(first + (last - first) * (step - 1) / %(steps)s) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'),
    coalesce(documents, 0), coalesce(copies, 0), first, last,
    to_char(to_timestamp(last) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')
FROM span CROSS JOIN generate_series(1, %(steps)s) AS step LEFT JOIN counted USING (step)
ORDER BY step

-- name: count_origins
-- Which source published after which: documents that were published after the first document of their cluster, by the source
-- of the first document and by their own source; the median delay, the counts in steps of time as (step, documents), and the
-- total number of rows. For a live generation. Reads members and their documents.
WITH copy AS MATERIALIZED (
    -- The column for the delay in the view is an interval, which cannot span the first and the last possible date.
    SELECT first_source, source, date_part('epoch', published_at) - date_part('epoch', first_published_at) AS delay,
        least(greatest(width_bucket(date_part('epoch', published_at), %(first)s, %(last)s, %(steps)s), 1), %(steps)s) AS step
    FROM nearsim.first_publications WHERE generation_id = {generation_id} AND published_at IS NOT NULL
), listed AS (
    SELECT first_source, source, count(*) AS documents, percentile_cont(0.5) WITHIN GROUP (ORDER BY delay) AS delay,
        count(*) OVER () AS all_origins
    FROM copy GROUP BY first_source, source
    ORDER BY count(*) DESC, first_source COLLATE "C", source COLLATE "C" LIMIT %(amount)s
), counted AS (
    SELECT first_source, source, step, count(*) AS documents FROM copy GROUP BY first_source, source, step
)
SELECT listed.first_source, listed.source, listed.documents, listed.delay,
    array_agg(ARRAY[counted.step, counted.documents]), listed.all_origins
FROM listed
JOIN counted ON coalesce(counted.first_source, '') = coalesce(listed.first_source, '')
    AND coalesce(counted.source, '') = coalesce(listed.source, '')
    AND (counted.first_source IS NULL) = (listed.first_source IS NULL) AND (counted.source IS NULL) = (listed.source IS NULL)
GROUP BY listed.first_source, listed.source, listed.documents, listed.delay, listed.all_origins
ORDER BY listed.documents DESC, listed.first_source COLLATE "C", listed.source COLLATE "C"

-- name: read_cluster_timelines
-- When the documents of these clusters were published: the first date as text, and the counts in equal steps of time up to
-- the last date, as (step, documents). Relies on the leaf's index on (cluster_id, is_survivor, doc_id) and on document_pkey.
WITH dated AS MATERIALIZED (
    SELECT member.cluster_id, date_part('epoch', document.published_at) AS at
    FROM {cluster_member} AS member
    JOIN nearsim.document USING (doc_id)
    WHERE member.cluster_id = ANY(CAST(%(cluster_ids)s AS bigint[])) AND isfinite(document.published_at)
), counted AS (
    SELECT cluster_id, first, least(width_bucket(at, first, greatest(last, first + 1), %(steps)s), %(steps)s) AS step,
        count(*) AS documents
    FROM dated
    JOIN (SELECT cluster_id, min(at) AS first, max(at) AS last FROM dated GROUP BY cluster_id) AS span USING (cluster_id)
    GROUP BY cluster_id, first, step
)
SELECT cluster_id, to_char(to_timestamp(first) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'), array_agg(ARRAY[step, documents])
FROM counted GROUP BY cluster_id, first

-- name: read_large_buckets
-- The largest buckets with two or more members, with the names of their first members; and, over all such buckets, their
-- number, the number of buckets over the limit (0 means no limit), and the number of links left out. Relies on the index on
-- (bucket_hash, doc_id).
WITH bucket AS MATERIALIZED (
    SELECT bucket_hash, members,
        CASE WHEN %(bucket_limit)s > 0 AND members > %(bucket_limit)s
            THEN (members - %(bucket_limit)s) * (members - %(bucket_limit)s - 1) / 2 ELSE 0 END AS left_out
    FROM nearsim.count_buckets({generation_id})
)
SELECT large.bucket_hash, large.members, large.left_out, first.names,
    (SELECT count(*) FROM bucket),
    (SELECT count(*) FROM bucket WHERE %(bucket_limit)s > 0 AND members > %(bucket_limit)s),
    (SELECT sum(left_out) FROM bucket)
FROM (SELECT * FROM bucket ORDER BY members DESC, bucket_hash LIMIT %(amount)s) AS large
CROSS JOIN LATERAL (
    SELECT array_agg(coalesce(document.title, document.external_id) ORDER BY member.doc_id) AS names
    FROM (SELECT doc_id FROM {band} AS band WHERE bucket_hash = large.bucket_hash ORDER BY doc_id LIMIT %(members)s) AS member
    JOIN nearsim.document USING (doc_id)
) AS first
ORDER BY large.members DESC, large.bucket_hash

-- name: read_featureless
-- The first documents without features, with the length of their texts in characters. Reads all signatures; relies on
-- document_pkey.
SELECT document.external_id, document.title, document.source, coalesce(document.body_length, length(document.body), 0)
FROM (SELECT doc_id FROM {signature} AS signature WHERE feature_count = 0 ORDER BY doc_id LIMIT %(amount)s) AS empty
JOIN nearsim.document USING (doc_id)
ORDER BY doc_id

-- name: read_lowest_pairs
-- The least similar stored pairs, with their cluster and verdict. Reads all pairs; relies on the keys.
SELECT {pair_of_report}, l.numbers_digest <> r.numbers_digest, member.cluster_id, verdict.verdict
FROM (SELECT * FROM {similar_pair} AS similar_pair ORDER BY similarity, left_id, right_id LIMIT %(amount)s) AS pair
JOIN {signature} AS l ON l.doc_id = pair.left_id
JOIN {signature} AS r ON r.doc_id = pair.right_id
{with_cluster_and_verdict}
ORDER BY pair.similarity, pair.left_id, pair.right_id

-- name: read_numbers_differ_pairs
-- The most similar stored pairs whose numbers differ, with their cluster and verdict. Reads all pairs and signatures.
SELECT {pair_of_report}, true, member.cluster_id, verdict.verdict
FROM (
    SELECT stored.* FROM {similar_pair} AS stored
    JOIN {signature} AS l ON l.doc_id = stored.left_id
    JOIN {signature} AS r ON r.doc_id = stored.right_id
    WHERE l.numbers_digest <> r.numbers_digest
    ORDER BY stored.similarity DESC, stored.left_id, stored.right_id LIMIT %(amount)s
) AS pair
{with_cluster_and_verdict}
ORDER BY pair.similarity DESC, pair.left_id, pair.right_id

-- name: sample_pairs_by_similarity
-- A stored pair from each step of similarity from `min_similarity` to 1, chosen by a hash of its doc_ids, with its cluster
-- and verdict. Reads all pairs; relies on the keys.
SELECT {pair_of_report}, l.numbers_digest <> r.numbers_digest, member.cluster_id, verdict.verdict
FROM (
    SELECT min(ARRAY[hashint8extended(left_id, right_id), left_id, right_id]) AS chosen
    FROM {similar_pair} AS similar_pair
    GROUP BY least(width_bucket(similarity, %(min_similarity)s, 1, %(steps)s), %(steps)s)
) AS step
JOIN {similar_pair} AS pair ON pair.left_id = step.chosen[2] AND pair.right_id = step.chosen[3]
JOIN {signature} AS l ON l.doc_id = pair.left_id
JOIN {signature} AS r ON r.doc_id = pair.right_id
{with_cluster_and_verdict}
ORDER BY pair.similarity, pair.left_id, pair.right_id

-- name: read_texts
-- Documents for display: the first characters of the text, from bodies_of, its length, and whether it differs from the
-- signed text. Relies on document_pkey and on the key of the signatures.
SELECT document.doc_id, document.external_id, document.title, left(text.body, %(characters)s), length(text.body),
    document.source, to_char(document.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'), document.url,
    document.revision <> signature.revision
        OR coalesce(document.body_digest <> CAST(md5(coalesce(text.body, '')) AS uuid), false)
FROM nearsim.document
JOIN {signature} AS signature USING (doc_id)
LEFT JOIN nearsim.bodies_of(CAST(%(doc_ids)s AS bigint[])) AS text USING (doc_id)
WHERE document.doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))

-- name: read_source_texts
-- The same as read_texts, for an attached table that the caller may read. Relies on document_pkey, and on the key of the
-- attached table, which is probed once for each document (LIMIT prevents a join of all rows).
SELECT attached.doc_id, attached.external_id, attached.title, left(text.body, %(characters)s), length(text.body),
    attached.source, to_char(attached.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'), attached.url,
    attached.revision <> signature.revision
        OR coalesce(attached.body_digest <> CAST(md5(coalesce(text.body, '')) AS uuid), false)
FROM nearsim.document AS attached
JOIN {signature} AS signature USING (doc_id)
{with_source_row}
CROSS JOIN LATERAL (
    SELECT CASE WHEN attached.body_digest IS NULL THEN attached.body ELSE source_row.body END
) AS text (body)
WHERE attached.doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
