-- name: read_ties_same_numbers
-- The same as read_ties, but pairs and twins tie only documents with equal numbers. A twin is tied to the first twin with
-- its numbers, and the first twins of paired heads are tied to each other. Relies on the index on head_id and on
-- verdict_collection.
WITH same_numbers AS (
    SELECT head_id, numbers_digest, min(doc_id) AS first_id FROM {signature} AS signature
    WHERE head_id IS NOT NULL GROUP BY head_id, numbers_digest
)
SELECT a.first_id, 0, string_agg(int8send(b.first_id), '')
FROM {tying_pair} AS pair
JOIN same_numbers AS a ON a.head_id = pair.left_id
JOIN same_numbers AS b ON b.head_id = pair.right_id AND b.numbers_digest = a.numbers_digest
GROUP BY a.first_id
UNION ALL
SELECT same_numbers.first_id, 1, string_agg(int8send(twin.doc_id), '')
FROM same_numbers
JOIN {signature} AS twin ON twin.head_id = same_numbers.head_id AND twin.numbers_digest = same_numbers.numbers_digest
WHERE twin.doc_id <> same_numbers.first_id
GROUP BY same_numbers.first_id
UNION ALL
SELECT left_id, 2, string_agg(int8send(right_id), '') FROM nearsim.verdict
WHERE {is_pin_of_signed}
GROUP BY left_id

-- name: read_ties
-- All ties between documents: pairs (kind 0), twins with their head (1), and pins between signed documents (2). There is one
-- row for each document and kind, in which the other documents are packed into eight bytes each. Relies on the key of the
-- pairs, on the index on head_id and on verdict_collection.
SELECT left_id, 0, string_agg(int8send(right_id), '') FROM {tying_pair} AS similar_pair GROUP BY left_id
UNION ALL
SELECT head_id, 1, string_agg(int8send(doc_id), '') FROM {signature} AS signature WHERE head_id <> doc_id GROUP BY head_id
UNION ALL
SELECT left_id, 2, string_agg(int8send(right_id), '') FROM nearsim.verdict
WHERE {is_pin_of_signed}
GROUP BY left_id

-- name: read_ties_of_same_numbers
-- The same as read_ties_of, but pairs and twins tie only documents with equal numbers, as in read_ties_same_numbers. `class`
-- has, for each head and digest of numbers, the requested documents and the first twin with these numbers. Relies on the
-- same indexes.
WITH class AS MATERIALIZED (
    SELECT requested.head_id, requested.numbers_digest, requested.doc_ids, first.doc_id AS first_id
    FROM (
        SELECT head_id, numbers_digest, array_agg(doc_id) AS doc_ids FROM {signature} AS signature
        WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id IS NOT NULL
        GROUP BY head_id, numbers_digest
    ) AS requested
    CROSS JOIN LATERAL {first_of_numbers} AS first
), other AS (
    SELECT class.first_id, class.numbers_digest, pair.other_id AS head_id
    FROM class JOIN {pair_end} AS pair ON pair.doc_id = class.head_id
    WHERE class.first_id = ANY(class.doc_ids) AND NOT pair.by_passage
)
SELECT requested.first_id, 0, int8send(first.doc_id)
FROM other AS requested CROSS JOIN LATERAL {first_of_numbers} AS first
UNION ALL
SELECT class.first_id, 1, string_agg(int8send(twin.doc_id), '')
FROM class
JOIN {signature} AS twin
    ON twin.head_id = class.head_id AND twin.head_id <> twin.doc_id AND twin.numbers_digest = class.numbers_digest
WHERE twin.doc_id <> class.first_id AND class.first_id = ANY(class.doc_ids)
GROUP BY class.first_id
UNION ALL
SELECT class.first_id, 1, int8send(requested.doc_id)
FROM class CROSS JOIN LATERAL unnest(class.doc_ids) AS requested (doc_id)
WHERE requested.doc_id <> class.first_id
UNION ALL
SELECT left_id, 2, int8send(right_id) FROM nearsim.verdict
WHERE (left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[])))
    AND {is_pin_of_signed}

-- name: read_ties_of
-- The ties of these documents: pairs (kind 0), twins (1), pins (2). A head is read with all its twins, a twin only with its
-- head. Relies on the keys, on the indexes on right_id and head_id, and on the indexes of verdict. There is no LATERAL,
-- because the planner would expect every document to have as many pairs as documents with pairs have on average.
SELECT doc_id, 0, string_agg(int8send(other_id), '') FROM {pair_end} AS pair
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND NOT by_passage GROUP BY doc_id
UNION ALL
SELECT head_id, 1, string_agg(int8send(doc_id), '') FROM {signature} AS signature
WHERE head_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id <> doc_id GROUP BY head_id
UNION ALL
SELECT head_id, 1, int8send(doc_id) FROM {signature} AS signature
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id <> doc_id
UNION ALL
SELECT left_id, 2, int8send(right_id) FROM nearsim.verdict
WHERE (left_id = ANY(CAST(%(doc_ids)s AS bigint[])) OR right_id = ANY(CAST(%(doc_ids)s AS bigint[])))
    AND {is_pin_of_signed}

-- name: read_similarities
-- The similarities of pairs, whose documents may be heads or twins, packed into eight bytes each in the order of the query;
-- 0 for a pair that no longer exists. Relies on the keys.
SELECT coalesce(string_agg(float8send(coalesce(pair.similarity, 0)), '' ORDER BY requested.row), '')
FROM unnest(CAST(%(left_ids)s AS bigint[]), CAST(%(right_ids)s AS bigint[])) WITH ORDINALITY
    AS requested (left_id, right_id, row)
LEFT JOIN {signature} AS l ON l.doc_id = requested.left_id
LEFT JOIN {signature} AS r ON r.doc_id = requested.right_id
LEFT JOIN {tying_pair} AS pair
    ON pair.left_id = least(l.head_id, r.head_id) AND pair.right_id = greatest(l.head_id, r.head_id)

-- name: read_first_twins
-- For each of these heads and each digest of numbers among its twins, the first such twin, which the pairs of the head also
-- tie. Relies on the index on head_id.
SELECT min(doc_id) FROM {signature} AS signature
WHERE head_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND head_id <> doc_id
GROUP BY head_id, numbers_digest

-- name: read_members
-- The members of all clusters: for each cluster one row with its survivors and one with its other members, packed into eight
-- bytes each. Reads the whole table.
SELECT cluster_id, is_survivor, string_agg(int8send(doc_id), '') FROM {cluster_member} AS cluster_member
GROUP BY cluster_id, is_survivor

-- name: read_members_of
-- Those of the documents that are members of clusters, in rows like those of read_members. Relies on the leaf's key.
SELECT cluster_id, is_survivor, string_agg(int8send(doc_id), '') FROM {cluster_member} AS cluster_member
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
GROUP BY cluster_id, is_survivor

-- name: read_clusters_of
-- All members of the clusters to which these documents belong, in rows like those of read_members. Relies on the leaf's key
-- and on its index on cluster_id.
SELECT cluster_id, is_survivor, string_agg(int8send(doc_id), '') FROM {cluster_member} AS cluster_member
WHERE cluster_id = ANY (ARRAY(
    SELECT cluster_id FROM {cluster_member} AS cluster_member WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))))
GROUP BY cluster_id, is_survivor

-- name: read_survivors
-- The survivors of these clusters, in rows like those of read_members. Relies on the leaf's index on (cluster_id,
-- is_survivor, doc_id).
SELECT cluster_id, is_survivor, int8send(doc_id) FROM {cluster_member} AS cluster_member
WHERE cluster_id = ANY(CAST(%(cluster_ids)s AS bigint[])) AND is_survivor

-- name: sample_largest
-- The largest clusters with at least `min_texts` distinct texts, each with its number of documents and an evenly spread
-- sample of its texts: their heads, packed into eight bytes each. Reads all members, and the signatures of these clusters
-- by key.
WITH largest AS MATERIALIZED (
    SELECT cluster_id, count(*) AS documents FROM {cluster_member} AS cluster_member
    GROUP BY cluster_id HAVING count(*) >= %(min_texts)s ORDER BY count(*) DESC, cluster_id LIMIT %(max_clusters)s
), text AS (
    SELECT DISTINCT largest.cluster_id, largest.documents, signature.head_id
    FROM largest
    JOIN {cluster_member} AS member ON member.cluster_id = largest.cluster_id
    JOIN {signature} AS signature ON signature.doc_id = member.doc_id
    WHERE signature.head_id IS NOT NULL
), placed AS (
    SELECT cluster_id, documents, head_id, row_number() OVER (PARTITION BY cluster_id ORDER BY head_id) - 1 AS place,
        count(*) OVER (PARTITION BY cluster_id) AS texts
    FROM text
)
SELECT cluster_id, documents, string_agg(int8send(head_id), '' ORDER BY head_id)
FROM placed
WHERE texts >= %(min_texts)s AND (place = 0
    OR place * (%(max_texts)s - 1) / (texts - 1) <> (place - 1) * (%(max_texts)s - 1) / (texts - 1))
GROUP BY cluster_id, documents
ORDER BY documents DESC, cluster_id

-- name: rank_documents
-- Documents in the order of the keep policy, the best first, packed into eight bytes each. Documents that a person chose to
-- keep come first, with the newest choice before the others. Then the rules decide in their order, if there are any: a single
-- rule by one number, which sorts twice as fast as an array. Among equals, the earlier date comes first, then the smaller
-- doc_id (with `prefers_last` the larger one). LATERAL with LIMIT looks up each document by the key, even if the statistics
-- say that the table is empty. Relies on document_pkey.
SELECT coalesce(string_agg(int8send(requested.doc_id), '' ORDER BY
    (SELECT max(pin_id) FROM nearsim.survivor_pin WHERE survivor_pin.doc_id = document.doc_id
        AND undone_at IS NULL) DESC NULLS LAST,
    ranked.keys[1], CASE WHEN %(rule_count)s > 1 THEN ranked.keys END,
    coalesce(document.published_at, document.created_at),
    CASE WHEN %(prefers_last)s THEN -requested.doc_id ELSE requested.doc_id END), '')
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(scores)s AS double precision[])) AS requested (doc_id, score)
LEFT JOIN LATERAL (SELECT * FROM nearsim.document WHERE doc_id = requested.doc_id LIMIT 1) AS document ON true
LEFT JOIN LATERAL (
    -- OFFSET 0, so that the keys are computed once.
    SELECT CASE WHEN %(rule_count)s > 0 THEN nearsim.keep_keys(CAST(%(rules)s AS text[]), requested.score, document.title,
        document.body, document.body_length, document.source, document.url, document.published_at, document.created_at,
        document.attributes) END AS keys
    OFFSET 0
) AS ranked ON true

-- name: read_chosen
-- Those of the documents that a person chose to keep. Relies on survivor_pin_document_key.
SELECT DISTINCT doc_id FROM nearsim.survivor_pin
WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[])) AND undone_at IS NULL

-- name: relabel_clusters
-- Give merged clusters the id of the cluster that they are merged into. Relies on the leaf's index on cluster_id.
UPDATE {cluster_member_leaf} AS member SET cluster_id = moved.new_id
FROM unnest(CAST(%(old_ids)s AS bigint[]), CAST(%(new_ids)s AS bigint[])) AS moved (old_id, new_id)
WHERE {of_view} AND member.cluster_id = moved.old_id

-- name: delete_members
-- Delete the rows of documents that are no longer in a cluster. Relies on the leaf's key.
DELETE FROM {cluster_member_leaf} WHERE {of_view} AND doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))

-- name: upsert_members
-- Upsert cluster members. Relies on the leaf's key.
INSERT INTO {cluster_member_leaf} (generation_id, doc_id, cluster_id, is_survivor)
SELECT {generation_id}, doc_id, cluster_id, survives = 1
FROM unnest(CAST(%(doc_ids)s AS bigint[]), CAST(%(cluster_ids)s AS bigint[]), CAST(%(survives)s AS smallint[]))
    AS written (doc_id, cluster_id, survives)
ON CONFLICT (generation_id, doc_id) DO UPDATE SET cluster_id = excluded.cluster_id, is_survivor = excluded.is_survivor

-- name: read_clusters
-- Clusters of a minimum size, the largest first: the survivor, the external ids of the members in doc_id order, and the
-- title of the survivor. Reads what the view clusters reads.
SELECT cluster_id, survivor_external_id, members, survivor_title FROM nearsim.clusters
WHERE {of_view} AND documents >= %(min_size)s
ORDER BY documents DESC, cluster_id

-- name: find_cluster
-- The cluster of the document with an external id or, if there is none, the cluster with that number. Relies on
-- document_external_id_key, on the leaf's key and on its index on cluster_id.
SELECT coalesce(
    (SELECT member.cluster_id FROM nearsim.document JOIN {cluster_member} AS member USING (doc_id)
        WHERE document.collection_id = %(collection_id)s AND document.external_id = %(name)s),
    (SELECT cluster_id FROM {cluster_member} AS cluster_member WHERE cluster_id = CAST(%(number)s AS bigint) LIMIT 1))

-- name: read_cluster
-- The documents of a cluster: first the survivor, then the documents that are most similar to it. The similarity to the
-- survivor is 1 for its twins, and NULL for documents that are not a pair with it. Relies on the leaf's index on cluster_id
-- and on the keys of the leaves.
SELECT member.cluster_id, document.external_id, document.title, member.is_survivor,
    CASE WHEN member.is_survivor THEN NULL WHEN own.head_id = kept.head_id THEN 1 ELSE pair.similarity END AS similarity,
    own.numbers_digest <> kept.numbers_digest, document.source, document.published_at,
    CASE WHEN member.is_survivor THEN NULL WHEN own.head_id = kept.head_id THEN true
        WHEN pair.left_id IS NOT NULL THEN (SELECT nearsim.is_exact(recipe) FROM nearsim.generation
            WHERE generation_id = {generation_id}) END
FROM {cluster_member} AS member
JOIN nearsim.document USING (doc_id)
LEFT JOIN {signature} AS own ON own.doc_id = member.doc_id
LEFT JOIN LATERAL (
    SELECT signed.head_id, signed.numbers_digest FROM {cluster_member} AS first JOIN {signature} AS signed USING (doc_id)
    WHERE first.cluster_id = %(cluster_id)s AND first.is_survivor LIMIT 1
) AS kept ON true
LEFT JOIN {similar_pair} AS pair
    ON pair.left_id = least(own.head_id, kept.head_id) AND pair.right_id = greatest(own.head_id, kept.head_id)
WHERE member.cluster_id = %(cluster_id)s
ORDER BY member.is_survivor DESC, similarity DESC NULLS LAST, member.doc_id
