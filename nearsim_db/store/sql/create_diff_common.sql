-- The pairs of documents that two generations have in common, by the heads that make them pairs in each, with how many
-- they are, their first documents and both similarities. Twins have one head; none of the parts counts a pair of another.
-- A pair of heads can stand for very many classes at both ends, where twins of one generation are none in the other: so
-- classes are met from the end that has fewer, and where both have many from the pairs of the other generation. What is
-- known of families of twins misleads the planner: the order of the joins is the one below, and each is hashed.
SET LOCAL join_collapse_limit = 1;
SET LOCAL enable_nestloop = off;
SET LOCAL enable_mergejoin = off;
CREATE TEMP TABLE diff_common ON COMMIT DROP AS
WITH parted AS MATERIALIZED (
    -- Classes that share their head in the live generation with another class.
    SELECT class.* FROM diff_class AS class JOIN diff_live ON head_id = live_head
    WHERE classes > 1 AND new_head IS NOT NULL
), joined AS MATERIALIZED (
    SELECT class.* FROM diff_class AS class JOIN diff_new ON head_id = new_head
    WHERE classes > 1 AND live_head IS NOT NULL
), live_pair AS NOT MATERIALIZED (
    SELECT pair.left_id, pair.right_id, pair.similarity, l.classes * r.classes <= {most_classes} AS is_light,
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
-- Twins in both.
SELECT live_head AS live_left, live_head AS live_right, new_head AS new_left, new_head AS new_right,
    documents * (documents - 1) / 2 AS pairs, doc_id AS left_id, last_id AS right_id,
    CAST(1 AS double precision) AS live_similarity, CAST(1 AS double precision) AS new_similarity
FROM diff_class
WHERE documents > 1 AND live_head IS NOT NULL AND new_head IS NOT NULL
UNION ALL
-- Twins in the live generation, a pair in the new one.
SELECT one.live_head, one.live_head, pair.left_id, pair.right_id, one.documents * other.documents,
    one.doc_id, other.doc_id, 1, pair.similarity
FROM new_pair AS pair
JOIN parted AS one ON one.new_head = pair.few_id
JOIN parted AS other ON other.new_head = pair.many_id AND other.live_head = one.live_head
UNION ALL
-- A pair in the live generation, twins in the new one.
SELECT pair.left_id, pair.right_id, one.new_head, one.new_head, one.documents * other.documents,
    one.doc_id, other.doc_id, pair.similarity, 1
FROM live_pair AS pair
JOIN joined AS one ON one.live_head = pair.few_id
JOIN joined AS other ON other.live_head = pair.many_id AND other.new_head = one.new_head
UNION ALL
-- A pair in both.
SELECT live.left_id, live.right_id, new.left_id, new.right_id, one.documents * other.documents,
    one.doc_id, other.doc_id, live.similarity, new.similarity
FROM live_pair AS live
JOIN diff_class AS one ON one.live_head = live.left_id AND one.new_head IS NOT NULL
JOIN diff_class AS other ON other.live_head = live.right_id AND other.new_head IS NOT NULL
JOIN {new_pair} AS new ON new.left_id = least(one.new_head, other.new_head)
    AND new.right_id = greatest(one.new_head, other.new_head)
WHERE live.is_light
UNION ALL
SELECT live.left_id, live.right_id, new.left_id, new.right_id, one.documents * other.documents,
    one.doc_id, other.doc_id, live.similarity, new.similarity
FROM {new_pair} AS new
JOIN heavy_class AS one ON one.new_head = new.left_id
JOIN heavy_class AS other ON other.new_head = new.right_id
JOIN heavy AS live ON live.left_id = least(one.live_head, other.live_head)
    AND live.right_id = greatest(one.live_head, other.live_head);
SET LOCAL join_collapse_limit TO DEFAULT;
SET LOCAL enable_nestloop TO DEFAULT;
SET LOCAL enable_mergejoin TO DEFAULT;
ANALYZE diff_common
