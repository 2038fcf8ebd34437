-- name: count_diff_documents
-- Read the numbers of documents that a generation has signed: all, those with features, and those with an earlier twin.
-- Relies on the indexes of the signatures.
SELECT (SELECT count(*) FROM {signature} AS signature),
    (SELECT count(*) FROM {signature} AS signature WHERE feature_digest IS NOT NULL),
    (SELECT count(*) FROM {signature} AS signature WHERE head_id <> doc_id)

-- name: create_diff_classes
-- Group documents by their heads in two generations: a class is the set of all documents with the same two heads. A head
-- is NULL if the document has neither a pair nor a twin in that generation; documents for which both heads are NULL are
-- left out. Also list the heads of each generation with their numbers of documents and of classes. Reads twins and ends
-- of pairs from indexes, and no whole signature.
CREATE TEMP TABLE diff_class ON COMMIT DROP AS
WITH live AS (
    SELECT doc_id, min(head_id) AS head_id FROM (
        SELECT doc_id, head_id FROM {live_signature} AS signature WHERE head_id <> doc_id
        UNION ALL SELECT head_id, head_id FROM {live_signature} AS signature WHERE head_id <> doc_id
        UNION ALL SELECT doc_id, doc_id FROM {live_end} AS pair
    ) AS tied
    GROUP BY doc_id
), new AS (
    SELECT doc_id, min(head_id) AS head_id FROM (
        SELECT doc_id, head_id FROM {new_signature} AS signature WHERE head_id <> doc_id
        UNION ALL SELECT head_id, head_id FROM {new_signature} AS signature WHERE head_id <> doc_id
        UNION ALL SELECT doc_id, doc_id FROM {new_end} AS pair
    ) AS tied
    GROUP BY doc_id
)
SELECT live.head_id AS live_head, new.head_id AS new_head, count(*) AS documents, min(doc_id) AS doc_id,
    max(doc_id) AS last_id
FROM live FULL JOIN new USING (doc_id)
GROUP BY 1, 2;
CREATE INDEX ON diff_class (live_head, doc_id);
CREATE INDEX ON diff_class (new_head, doc_id);
CREATE INDEX ON diff_class (live_head, new_head);
CREATE TEMP TABLE diff_live ON COMMIT DROP AS
SELECT live_head AS head_id, CAST(sum(documents) AS bigint) AS documents, count(*) AS classes
FROM diff_class WHERE live_head IS NOT NULL GROUP BY 1;
CREATE UNIQUE INDEX ON diff_live (head_id);
CREATE TEMP TABLE diff_new ON COMMIT DROP AS
SELECT new_head AS head_id, CAST(sum(documents) AS bigint) AS documents, count(*) AS classes
FROM diff_class WHERE new_head IS NOT NULL GROUP BY 1;
CREATE UNIQUE INDEX ON diff_new (head_id);
ANALYZE diff_class;
ANALYZE diff_live;
ANALYZE diff_new

-- name: create_diff_common
-- Find the pairs that two generations have in common, grouped by their heads in each generation, with their number, an
-- example and both similarities. Twins share a head. Each common pair counts in exactly one of the parts below. A pair
-- of heads can represent very many pairs of classes if twins of one generation are not twins in the other. Therefore
-- classes are joined starting from the head that has fewer of them (`few_id`), and for heavy pairs of heads starting from
-- the pairs of the other generation. Statistics about twins mislead the planner, so all joins are hash joins, in the
-- order written here. Relies on the indexes of the diff tables. Run create_diff_classes first.
SET LOCAL join_collapse_limit = 1;
SET LOCAL enable_nestloop = off;
SET LOCAL enable_mergejoin = off;
CREATE TEMP TABLE diff_common ON COMMIT DROP AS
WITH parted AS MATERIALIZED (
    -- Classes of live twins that are not all twins in the new generation.
    SELECT class.* FROM diff_class AS class JOIN diff_live ON head_id = live_head
    WHERE classes > 1 AND new_head IS NOT NULL
), joined AS MATERIALIZED (
    -- Classes of new twins that are not all twins in the live generation.
    SELECT class.* FROM diff_class AS class JOIN diff_new ON head_id = new_head
    WHERE classes > 1 AND live_head IS NOT NULL
), live_pair AS NOT MATERIALIZED (
    SELECT pair.left_id, pair.right_id, pair.similarity, l.classes * r.classes <= {max_class_pairs} AS is_light,
        CASE WHEN l.classes <= r.classes THEN pair.left_id ELSE pair.right_id END AS few_id,
        CASE WHEN l.classes <= r.classes THEN pair.right_id ELSE pair.left_id END AS many_id
    FROM {live_pair} AS pair
    JOIN diff_live AS l ON l.head_id = pair.left_id
    JOIN diff_live AS r ON r.head_id = pair.right_id
), new_pair AS NOT MATERIALIZED (
    SELECT pair.left_id, pair.right_id, pair.similarity,
        CASE WHEN l.classes <= r.classes THEN pair.left_id ELSE pair.right_id END AS few_id,
        CASE WHEN l.classes <= r.classes THEN pair.right_id ELSE pair.left_id END AS many_id
    FROM {new_pair} AS pair
    JOIN diff_new AS l ON l.head_id = pair.left_id
    JOIN diff_new AS r ON r.head_id = pair.right_id
), heavy AS MATERIALIZED (
    SELECT left_id, right_id, similarity FROM live_pair WHERE NOT is_light
), heavy_class AS MATERIALIZED (
    SELECT class.* FROM diff_class AS class
    WHERE new_head IS NOT NULL AND live_head IN (SELECT left_id FROM heavy UNION SELECT right_id FROM heavy)
)
-- Twins in both generations.
SELECT live_head AS live_left, live_head AS live_right, new_head AS new_left, new_head AS new_right,
    documents * (documents - 1) / 2 AS pairs, doc_id AS left_id, last_id AS right_id,
    CAST(1 AS double precision) AS live_similarity, CAST(1 AS double precision) AS new_similarity
FROM diff_class
WHERE documents > 1 AND live_head IS NOT NULL AND new_head IS NOT NULL
UNION ALL
-- Twins in the live generation that are a pair in the new one.
SELECT a.live_head, a.live_head, pair.left_id, pair.right_id, a.documents * b.documents,
    a.doc_id, b.doc_id, 1, pair.similarity
FROM new_pair AS pair
JOIN parted AS a ON a.new_head = pair.few_id
JOIN parted AS b ON b.new_head = pair.many_id AND b.live_head = a.live_head
UNION ALL
-- Pairs in the live generation that are twins in the new one.
SELECT pair.left_id, pair.right_id, a.new_head, a.new_head, a.documents * b.documents,
    a.doc_id, b.doc_id, pair.similarity, 1
FROM live_pair AS pair
JOIN joined AS a ON a.live_head = pair.few_id
JOIN joined AS b ON b.live_head = pair.many_id AND b.new_head = a.new_head
UNION ALL
-- Pairs in both generations whose live heads represent few pairs of classes.
SELECT live.left_id, live.right_id, new.left_id, new.right_id, a.documents * b.documents,
    a.doc_id, b.doc_id, live.similarity, new.similarity
FROM live_pair AS live
JOIN diff_class AS a ON a.live_head = live.left_id AND a.new_head IS NOT NULL
JOIN diff_class AS b ON b.live_head = live.right_id AND b.new_head IS NOT NULL
JOIN {new_pair} AS new ON new.left_id = least(a.new_head, b.new_head) AND new.right_id = greatest(a.new_head, b.new_head)
WHERE live.is_light
UNION ALL
-- Pairs in both generations whose live heads represent many pairs of classes.
SELECT live.left_id, live.right_id, new.left_id, new.right_id, a.documents * b.documents,
    a.doc_id, b.doc_id, live.similarity, new.similarity
FROM {new_pair} AS new
JOIN heavy_class AS a ON a.new_head = new.left_id
JOIN heavy_class AS b ON b.new_head = new.right_id
JOIN heavy AS live
    ON live.left_id = least(a.live_head, b.live_head) AND live.right_id = greatest(a.live_head, b.live_head);
SET LOCAL join_collapse_limit = 8;
SET LOCAL enable_nestloop = on;
SET LOCAL enable_mergejoin = on;
ANALYZE diff_common

-- name: count_diff_pairs
-- Read the number of pairs of one generation, where each twin counts as a document of its own. Reads all pairs of the
-- generation. Run create_diff_classes first.
SELECT coalesce(sum(l.documents * r.documents), 0)
    + (SELECT coalesce(sum(documents * (documents - 1) / 2), 0) FROM {heads})
FROM {pair} AS pair
JOIN {heads} AS l ON l.head_id = pair.left_id
JOIN {heads} AS r ON r.head_id = pair.right_id

-- name: count_diff_common
-- Read the number of common pairs, and how many of them differ in similarity. Run create_diff_common first.
SELECT coalesce(sum(pairs), 0),
    coalesce(sum(pairs) FILTER (WHERE abs(live_similarity - new_similarity) > {tolerance}), 0)
FROM diff_common

-- name: create_diff_overlaps
-- Count the documents that each cluster of one generation shares with each cluster of the other; a NULL cluster means that
-- the documents are in no cluster of that generation. Reads the cluster members of both generations.
CREATE TEMP TABLE diff_overlap ON COMMIT DROP AS
SELECT live.cluster_id AS live_cluster, new.cluster_id AS new_cluster, count(*) AS documents
FROM {live_member} AS live FULL JOIN {new_member} AS new USING (doc_id)
GROUP BY 1, 2;
CREATE INDEX ON diff_overlap (live_cluster);
CREATE INDEX ON diff_overlap (new_cluster);
ANALYZE diff_overlap

-- name: count_diff_clusters
-- Read the numbers of clusters by how they changed. Two clusters match if each shares documents with no other cluster of
-- the other generation. Relies on the indexes of diff_overlap; reads the survivors of both generations. Run
-- create_diff_overlaps first.
WITH live AS (
    SELECT live_cluster AS cluster_id, sum(documents) AS documents, count(new_cluster) AS parts, min(new_cluster) AS part
    FROM diff_overlap WHERE live_cluster IS NOT NULL GROUP BY 1
), new AS (
    SELECT new_cluster AS cluster_id, sum(documents) AS documents, count(live_cluster) AS parts, min(live_cluster) AS part
    FROM diff_overlap WHERE new_cluster IS NOT NULL GROUP BY 1
), matched AS (
    SELECT live.cluster_id AS live_cluster, new.cluster_id AS new_cluster, live.documents > shared.documents AS lost,
        new.documents > shared.documents AS gained
    FROM live
    JOIN new ON new.cluster_id = live.part AND new.part = live.cluster_id
    JOIN diff_overlap AS shared ON shared.live_cluster = live.cluster_id AND shared.new_cluster = new.cluster_id
    WHERE live.parts = 1 AND new.parts = 1
), kept AS (
    SELECT count(*) FILTER (WHERE NOT lost AND NOT gained) AS same, count(*) FILTER (WHERE gained AND NOT lost) AS grown,
        count(*) FILTER (WHERE lost AND NOT gained) AS shrunk, count(*) FILTER (WHERE lost AND gained) AS changed
    FROM matched
), survivors AS (
    SELECT count(*) AS changed
    FROM matched
    LEFT JOIN {live_member} AS before ON before.cluster_id = matched.live_cluster AND before.is_survivor
    LEFT JOIN {new_member} AS after ON after.cluster_id = matched.new_cluster AND after.is_survivor
    -- With cluster.keep = "none", a cluster has no survivor unless a person chose a document.
    WHERE before.doc_id IS DISTINCT FROM after.doc_id
)
SELECT (SELECT count(*) FROM live), (SELECT count(*) FROM new), kept.same, kept.grown, kept.shrunk, kept.changed,
    (SELECT count(*) FROM new WHERE parts = 0), (SELECT count(*) FROM live WHERE parts = 0),
    (SELECT count(*) FROM new WHERE parts > 1), (SELECT count(*) FROM live WHERE parts > 1), survivors.changed
FROM kept CROSS JOIN survivors

-- name: read_diff_rescored
-- Read a sample of the common pairs that differ in similarity, chosen by a hash of their documents: two documents, the
-- number of pairs that they are an example of, and for each generation whether they are twins, their similarity and their
-- shared bands. Relies on the keys of the pairs. Run create_diff_common first.
SELECT chosen.left_id, chosen.right_id, chosen.pairs, chosen.live_left = chosen.live_right, chosen.live_similarity,
    live.shared_bands, chosen.new_left = chosen.new_right, chosen.new_similarity, new.shared_bands
FROM (
    SELECT * FROM diff_common
    WHERE abs(live_similarity - new_similarity) > {tolerance}
    ORDER BY hashint8extended(left_id, right_id), left_id, right_id
    LIMIT %(amount)s
) AS chosen
LEFT JOIN {live_pair} AS live ON live.left_id = chosen.live_left AND live.right_id = chosen.live_right
LEFT JOIN {new_pair} AS new ON new.left_id = chosen.new_left AND new.right_id = chosen.new_right
ORDER BY hashint8extended(chosen.left_id, chosen.right_id), chosen.left_id, chosen.right_id

-- name: read_diff_documents
-- Read the state of the given documents in a generation: whether each exists, its external id and title, its signature,
-- and whether it waits to be signed or searched. Relies on the keys.
SELECT requested.doc_id, document.doc_id IS NOT NULL, document.external_id, document.title, signature.feature_count,
    signature.feature_digest, signature.sketch,
    EXISTS (SELECT FROM nearsim_index.queued_work AS work
        WHERE work.generation_id = {generation_id} AND work.doc_id = requested.doc_id AND work.stage IN ('sign', 'search')
            AND work.set_aside_at IS NULL)
FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS requested (doc_id)
LEFT JOIN nearsim.document ON document.doc_id = requested.doc_id
LEFT JOIN {signature} AS signature ON signature.doc_id = requested.doc_id

-- name: read_diff_absent
-- Read a sample of the pairs that the other generation lacks, chosen by a hash of their heads: whether they are twins,
-- their similarity, shared bands, the number of such pairs, and two documents as an example. `a` is a class of the left
-- head that the other generation ties to only some of the documents of the right head; `b` is one of the remaining
-- documents. Relies on the indexes of diff_class and of the pairs. Run create_diff_common first.
WITH common AS (
    SELECT {left} AS left_id, {right} AS right_id, sum(pairs) AS pairs FROM diff_common GROUP BY 1, 2
), tie AS MATERIALIZED (
    SELECT tie.left_id, tie.right_id, tie.similarity, tie.shared_bands, tie.pairs - coalesce(common.pairs, 0) AS pairs
    FROM (
        SELECT pair.left_id, pair.right_id, pair.similarity, pair.shared_bands, l.documents * r.documents AS pairs
        FROM {pair} AS pair
        JOIN {heads} AS l ON l.head_id = pair.left_id
        JOIN {heads} AS r ON r.head_id = pair.right_id
        UNION ALL
        SELECT head_id, head_id, 1, NULL, documents * (documents - 1) / 2 FROM {heads} WHERE documents > 1
    ) AS tie
    LEFT JOIN common USING (left_id, right_id)
    WHERE tie.pairs > coalesce(common.pairs, 0)
    ORDER BY hashint8extended(tie.left_id, tie.right_id), tie.left_id, tie.right_id
    LIMIT %(amount)s
)
SELECT tie.left_id = tie.right_id, tie.similarity, tie.shared_bands, tie.pairs, a.doc_id, b.doc_id
FROM tie
CROSS JOIN LATERAL (
    SELECT class.* FROM diff_class AS class
    WHERE class.{head} = tie.left_id
        AND (SELECT documents FROM {heads} WHERE head_id = tie.right_id) >
            (SELECT coalesce(sum(twin.documents), 0) FROM diff_class AS twin
                WHERE twin.{head} = tie.right_id AND twin.{other_head} = class.{other_head})
            + (SELECT coalesce(sum(paired.documents), 0)
                FROM {other_end} AS pair
                JOIN diff_class AS paired ON paired.{head} = tie.right_id AND paired.{other_head} = pair.other_id
                WHERE pair.doc_id = class.{other_head})
    ORDER BY class.doc_id
    LIMIT 1
) AS a
CROSS JOIN LATERAL (
    SELECT CASE WHEN class.doc_id = a.doc_id THEN class.last_id ELSE class.doc_id END AS doc_id
    FROM diff_class AS class
    WHERE class.{head} = tie.right_id
        AND (class.doc_id <> a.doc_id OR a.{other_head} IS NULL AND a.documents > 1)
        AND (class.{other_head} = a.{other_head}) IS NOT TRUE
        AND NOT EXISTS (
            SELECT FROM {other_pair} AS pair
            WHERE pair.left_id = least(a.{other_head}, class.{other_head})
                AND pair.right_id = greatest(a.{other_head}, class.{other_head})
        )
    ORDER BY class.doc_id
    LIMIT 1
) AS b
ORDER BY hashint8extended(tie.left_id, tie.right_id), tie.left_id, tie.right_id

-- name: read_diff_clusters
-- Read a sample of the clusters of one generation whose documents are in several clusters of the other, chosen by a hash
-- of their ids. Each comes with the parts that share the most documents with it: ids, sizes, numbers of shared documents
-- and survivors. Relies on the indexes of diff_overlap and on the indexes on (cluster_id, is_survivor, doc_id). Run
-- create_diff_overlaps first.
WITH whole AS MATERIALIZED (
    SELECT {whole} AS cluster_id, sum(documents) AS documents, count({part}) AS parts
    FROM diff_overlap
    WHERE {whole} IS NOT NULL
    GROUP BY 1
    HAVING count({part}) > 1
    ORDER BY hashint8extended({whole}, 0), 1
    LIMIT %(amount)s
)
SELECT whole.cluster_id, whole.documents, whole.parts, kept.doc_id, named.external_id, named.title,
    part.cluster_id, size.documents, part.documents, part_kept.doc_id, part_named.external_id, part_named.title
FROM whole
CROSS JOIN LATERAL (
    SELECT {part} AS cluster_id, documents FROM diff_overlap
    WHERE {whole} = whole.cluster_id AND {part} IS NOT NULL
    ORDER BY documents DESC, 1
    LIMIT %(parts)s
) AS part
CROSS JOIN LATERAL (
    SELECT sum(documents) AS documents FROM diff_overlap WHERE {part} = part.cluster_id
) AS size
LEFT JOIN {whole_member} AS kept ON kept.cluster_id = whole.cluster_id AND kept.is_survivor
LEFT JOIN {part_member} AS part_kept ON part_kept.cluster_id = part.cluster_id AND part_kept.is_survivor
LEFT JOIN nearsim.document AS named ON named.doc_id = kept.doc_id
LEFT JOIN nearsim.document AS part_named ON part_named.doc_id = part_kept.doc_id
ORDER BY hashint8extended(whole.cluster_id, 0), whole.cluster_id, part.documents DESC, part.cluster_id
