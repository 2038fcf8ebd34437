CREATE FUNCTION nearsim.review_counts(
    collection text DEFAULT NULL, profile text DEFAULT NULL, reviewer text DEFAULT NULL, max_pairs integer DEFAULT 1000)
RETURNS TABLE (queue text, pairs bigint, complete boolean)
LANGUAGE sql STABLE ROWS 7 SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT named.queue, (
        SELECT count(*) FROM nearsim.review_queue(review_counts.collection, review_counts.profile, named.queue,
            review_counts.reviewer, max_pairs => review_counts.max_pairs)),
        nearsim.review_end(review_counts.collection, review_counts.profile, named.queue) IS NULL
    FROM unnest(ARRAY['review', 'threshold', 'numbers', 'ties', 'torn', 'nearly', 'sample']) WITH ORDINALITY AS named (queue, place)
    ORDER BY named.place;
END;
COMMENT ON FUNCTION nearsim.review_counts(text, text, text, integer) IS
    'The number of pairs left in each queue of review_queue, counted up to max_pairs, and whether the whole queue was searched';
