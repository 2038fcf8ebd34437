CREATE FUNCTION nearsim.review_scan(queue text) RETURNS integer
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
RETURN CASE queue WHEN 'ties' THEN 1000 ELSE 3000 END;
COMMENT ON FUNCTION nearsim.review_scan(text) IS
    'Internal (used by review_queue and review_end): the maximum number of pairs of a queue that are searched';

CREATE FUNCTION nearsim.pairs_of_step(generation integer, lowest double precision, number integer)
RETURNS SETOF nearsim.similar_pair
LANGUAGE plpgsql STABLE ROWS 1000 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Returns before any index is read if the caller may not see the generation.
    IF NOT EXISTS (SELECT FROM nearsim.generation AS its WHERE its.generation_id = generation) THEN
        RETURN;
    END IF;
    RETURN QUERY
        SELECT * FROM nearsim.similar_pair AS pair
        WHERE generation_id = generation
            AND similarity >= CASE number WHEN 0 THEN -1 ELSE lowest + (number - 1) * (1 - lowest) / 10 - 1e-9 END
            AND similarity <= CASE number WHEN 10 THEN 1 ELSE lowest + number * (1 - lowest) / 10 + 1e-9 END
            AND least(width_bucket(similarity, lowest, 1, 10), 10) = number;
END
$$;
COMMENT ON FUNCTION nearsim.pairs_of_step(integer, double precision, integer) IS
    'Internal (used by review_queue): the pairs whose similarity is in one of ten equal steps from lowest to 1, numbered from 1; step 0 has the pairs below lowest';

-- Runs as the caller, on tables with policies. Pairs of heads are read in the order of the index on (generation_id,
-- similarity), up to a number that can be searched in a fraction of a second; then their documents are joined. Texts in
-- attached tables are searched all at once, but only if some pair matches neither by its titles nor by its stored texts.
-- In the queue sample, each pair is hashed to (0, 1] and drawn if its hash is at most a probability. The probability is chosen
-- so that 30 pairs of each of ten steps of similarity are expected. Pairs are in the order of hash / probability. LIMIT makes
-- the planner expect few pairs; without it, the planner would read all documents. The partial index has one pair in 256: if it
-- has at least 30 pairs of a step, only these are searched; otherwise all pairs of the step are.
CREATE FUNCTION nearsim.review_queue(
    collection text DEFAULT NULL, profile text DEFAULT NULL, queue text DEFAULT 'threshold', reviewer text DEFAULT NULL,
    min_similarity double precision DEFAULT NULL, max_similarity double precision DEFAULT NULL, source text DEFAULT NULL,
    since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL, text text DEFAULT NULL,
    unreviewed boolean DEFAULT true, max_pairs integer DEFAULT 50)
RETURNS TABLE (left_id bigint, right_id bigint, left_external_id text, right_external_id text, left_title text,
    right_title text, left_source text, right_source text, similarity double precision, intersection_size integer,
    union_size integer, estimate real, shared_bands smallint, numbers_differ boolean, verdict text, seen_by text[],
    probability double precision)
LANGUAGE plpgsql STABLE ROWS 50 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    home constant integer := nearsim.collection_named(collection);
    live record;
    least_similar double precision;
    lowest double precision;
    shares double precision[];
    divisors double precision[];
    pairs text := 'nearsim.similar_pair';
    range text;
    condition text := 'true';
    ordering text;
    search text;
    lowest_fifth constant text := 'NOT pair.in_review AND pair.similarity >= $2 AND pair.similarity < $2 + (1 - $2) / 5';
    neighbours constant text := 'SELECT other_id FROM nearsim_index.pair_ends '
        'WHERE generation_id = $1 AND NOT in_review AND doc_id = ';
    cluster_mates constant text := 'SELECT %s AS doc_id UNION SELECT other.doc_id FROM nearsim.cluster_member AS own '
        'JOIN nearsim.cluster_member AS other ON other.generation_id = $1 AND other.cluster_id = own.cluster_id '
        'WHERE own.generation_id = $1 AND own.doc_id = %s';
    step_index constant text := '[1 + least(width_bucket(pair.similarity, $13, 1, 10), 10)]';
    pair_hash constant text := '((hashint8extended(pair.left_id, pair.right_id) >> 8 & 4294967295) + 1) '
        '/ CAST(4294967296 AS double precision)';
BEGIN
    IF home IS NULL THEN
        RETURN;
    END IF;
    SELECT * INTO live FROM nearsim.live_generation(home, profile);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    least_similar := least(nearsim.least_similarity(live.recipe), 0.999);
    lowest := least(least_similar, coalesce(nullif(CAST(live.recipe #>> '{match,review}' AS double precision), 0), 1));
    CASE queue
        WHEN 'review' THEN
            range := 'pair.in_review AND pair.similarity < $2';
            ordering := 'pair.similarity DESC';
        WHEN 'threshold' THEN
            range := lowest_fifth;
            ordering := 'pair.similarity';
        WHEN 'numbers' THEN
            range := 'NOT pair.in_review';
            condition := '(SELECT numbers_digest FROM nearsim_index.signed WHERE generation_id = $1 AND doc_id = pair.left_id)'
                ' <> (SELECT numbers_digest FROM nearsim_index.signed WHERE generation_id = $1 AND doc_id = pair.right_id)';
            ordering := 'pair.similarity DESC';
        WHEN 'ties' THEN
            range := lowest_fifth;
            condition := 'EXISTS (SELECT FROM nearsim.cluster_member AS own '
                'JOIN nearsim.cluster_member AS third ON third.generation_id = $1 AND third.cluster_id = own.cluster_id '
                'WHERE own.generation_id = $1 AND own.doc_id = pair.left_id '
                'AND third.doc_id NOT IN (pair.left_id, pair.right_id)) AND NOT EXISTS ('
                || neighbours || 'pair.left_id INTERSECT ' || neighbours || 'pair.right_id)';
            ordering := 'pair.similarity';
        WHEN 'torn' THEN
            range := 'NOT pair.in_review AND (pair.left_id, pair.right_id) IN (SELECT least(a.doc_id, b.doc_id), '
                'greatest(a.doc_id, b.doc_id) FROM nearsim.verdict AS torn '
                'CROSS JOIN LATERAL (' || format(cluster_mates, 'torn.left_id', 'torn.left_id') || ') AS a '
                'CROSS JOIN LATERAL (' || format(cluster_mates, 'torn.right_id', 'torn.right_id') || ') AS b '
                'WHERE torn.collection_id = $3 AND torn.verdict = ''vetoed'' AND torn.undone_at IS NULL)';
            ordering := 'pair.similarity DESC';
        WHEN 'nearly' THEN
            range := 'pair.in_review AND pair.similarity < $2';
            condition := '(SELECT cluster_id FROM nearsim.cluster_member '
                'WHERE generation_id = $1 AND doc_id = pair.left_id) <> (SELECT cluster_id FROM nearsim.cluster_member '
                'WHERE generation_id = $1 AND doc_id = pair.right_id)';
            ordering := 'pair.similarity DESC';
        WHEN 'sample' THEN
            SELECT array_agg(30.0 / nullif(coalesce(part.pairs, stepped.pairs), 0) ORDER BY number),
                array_agg(CASE WHEN part.pairs IS NULL THEN 1 ELSE 256 END ORDER BY number)
            INTO shares, divisors
            FROM generate_series(0, 10) AS number
            LEFT JOIN (
                SELECT least(width_bucket(own.similarity, lowest, 1, 10), 10) AS number, count(*) AS pairs
                FROM nearsim.similar_pair AS own
                WHERE own.generation_id = live.generation_id AND hashint8extended(own.left_id, own.right_id) & 255 = 0
                GROUP BY 1 HAVING count(*) >= 30
            ) AS part USING (number)
            LEFT JOIN LATERAL (
                SELECT count(*) AS pairs FROM nearsim.pairs_of_step(live.generation_id, lowest, number)
                WHERE part.pairs IS NULL
            ) AS stepped ON true;
            pairs := '(SELECT * FROM nearsim.similar_pair AS pair WHERE generation_id = $1 '
                'AND hashint8extended(left_id, right_id) & 255 = 0 AND ($15)' || step_index || ' = 256 '
                'UNION ALL SELECT pair.* FROM generate_series(0, 10) AS number CROSS JOIN LATERAL '
                'nearsim.pairs_of_step($1, $13, number) AS pair WHERE ($15)[1 + number] = 1)';
            range := pair_hash || ' <= ($14)' || step_index;
            ordering := pair_hash || ' / ($14)' || step_index;
        ELSE
            RAISE EXCEPTION 'there is no queue %; queues: review, threshold, numbers, ties, torn, nearly, sample',
                coalesce(quote_literal(queue), 'NULL') USING ERRCODE = 'invalid_parameter_value';
    END CASE;
    search := format('SELECT * FROM %s AS pair WHERE pair.generation_id = $1 AND %s '
        'AND ($5 IS NULL OR pair.similarity >= $5) AND ($6 IS NULL OR pair.similarity <= $6) ORDER BY %s LIMIT %s',
        pairs, range, ordering, CASE queue WHEN 'torn' THEN 'ALL' ELSE CAST(nearsim.review_scan(queue) AS text) END);
    RETURN QUERY EXECUTE format($query$
        WITH matching_attached AS MATERIALIZED (
            SELECT text.doc_id FROM nearsim.bodies_of(ARRAY(
                SELECT document.doc_id FROM nearsim.document
                WHERE collection_id = $3 AND body_digest IS NOT NULL AND doc_id IN (
                    SELECT unnest(ARRAY[pair.left_id, pair.right_id]) FROM (%s) AS pair))) AS text
            WHERE position(lower($10) IN lower(text.body)) > 0
        ), open AS (
            SELECT pair.*, a.external_id AS left_external_id, b.external_id AS right_external_id, a.title AS left_title,
                b.title AS right_title, a.source AS left_source, b.source AS right_source,
                CAST(%s AS double precision) AS probability
            FROM (%s) AS pair
            JOIN nearsim.document AS a ON a.doc_id = pair.left_id AND a.collection_id = $3
            JOIN nearsim.document AS b ON b.doc_id = pair.right_id AND b.collection_id = $3
            WHERE %s
                AND ($7 IS NULL OR $7 IN (a.source, b.source))
                AND (($8 IS NULL OR a.published_at >= $8) AND ($9 IS NULL OR a.published_at < $9)
                    OR ($8 IS NULL OR b.published_at >= $8) AND ($9 IS NULL OR b.published_at < $9))
                AND ($10 IS NULL OR position(lower($10) IN lower(concat_ws(' ', a.title, b.title, a.external_id,
                    b.external_id))) > 0 OR position(lower($10) IN lower(a.body)) > 0
                    OR position(lower($10) IN lower(b.body)) > 0
                    OR a.doc_id IN (SELECT doc_id FROM matching_attached)
                    OR b.doc_id IN (SELECT doc_id FROM matching_attached))
                AND NOT ($11 AND (EXISTS (
                    SELECT FROM nearsim.verdict AS judged WHERE judged.left_id = pair.left_id
                        AND judged.right_id = pair.right_id AND judged.undone_at IS NULL)
                    OR EXISTS (
                    SELECT FROM nearsim.review AS seen WHERE seen.left_id = pair.left_id
                        AND seen.right_id = pair.right_id AND seen.collection_id = $3
                        AND (seen.decided_at IS NOT NULL AND seen.undone_at IS NULL
                            AND (seen.answer <> 'skipped' OR (seen.by, seen.reviewer) = ($4, current_user))
                            OR seen.leased_until > now() AND (seen.by, seen.reviewer) IS DISTINCT FROM ($4, current_user)))))
            ORDER BY %s, pair.left_id, pair.right_id
            LIMIT $12
        )
        SELECT open.left_id, open.right_id, open.left_external_id, open.right_external_id, open.left_title,
            open.right_title, open.left_source, open.right_source, open.similarity, open.intersection_size,
            open.union_size, open.estimate, open.shared_bands,
            (SELECT numbers_digest FROM nearsim_index.signed WHERE generation_id = $1 AND doc_id = open.left_id)
                <> (SELECT numbers_digest FROM nearsim_index.signed WHERE generation_id = $1 AND doc_id = open.right_id),
            (SELECT judged.verdict FROM nearsim.verdict AS judged WHERE judged.left_id = open.left_id
                AND judged.right_id = open.right_id AND judged.undone_at IS NULL),
            ARRAY(SELECT DISTINCT seen.by FROM nearsim.review AS seen WHERE seen.left_id = open.left_id
                AND seen.right_id = open.right_id AND seen.collection_id = $3 ORDER BY 1),
            open.probability
        FROM open
        $query$, search, CASE WHEN queue = 'sample' THEN 'least(1, ($14)' || step_index || ') / ($15)' || step_index ELSE 'NULL' END,
            search, condition, ordering)
        USING live.generation_id, least_similar, home, reviewer, min_similarity, max_similarity, source, since, until, text,
            unreviewed, greatest(max_pairs, 0), lowest, shares, divisors;
END
$$;
COMMENT ON FUNCTION nearsim.review_queue(
    text, text, text, text, double precision, double precision, text, timestamptz, timestamptz, text, boolean, integer) IS
    'Pairs that a person should look at, the most doubtful first. The queues are: review (pairs below the threshold that are stored to be looked at), threshold (pairs in the lowest fifth of the range from the threshold to 1), numbers (pairs whose numbers differ), ties (pairs in the same fifth that connect a cluster of three or more documents, with no third document similar to both), torn (similar documents whose clusters a veto keeps apart), nearly (pairs below the threshold between two clusters), sample (pairs drawn at random from each step of similarity, with the probability of the draw). Unless unreviewed is false, pairs with a verdict or a decision, pairs that the caller skipped under the name reviewer, and pairs leased to somebody else are left out. You can filter by similarity, by the source of either document, by a part of its title, external_id or text, and by its publication date (since is included, until is not). Only the first pairs of a long queue are searched, up to the similarity that review_end returns';

CREATE FUNCTION nearsim.review_end(
    collection text DEFAULT NULL, profile text DEFAULT NULL, queue text DEFAULT 'threshold',
    min_similarity double precision DEFAULT NULL, max_similarity double precision DEFAULT NULL)
RETURNS double precision
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT CASE
        WHEN queue IN ('review', 'nearly') THEN (
            SELECT pair.similarity FROM nearsim.similar_pair AS pair
            WHERE pair.generation_id = live.generation_id AND pair.in_review AND pair.similarity < live.least_similar
                AND (review_end.min_similarity IS NULL OR pair.similarity >= review_end.min_similarity)
                AND (review_end.max_similarity IS NULL OR pair.similarity <= review_end.max_similarity)
            ORDER BY pair.similarity DESC OFFSET nearsim.review_scan(queue) LIMIT 1)
        WHEN queue = 'numbers' THEN (
            SELECT pair.similarity FROM nearsim.similar_pair AS pair
            WHERE pair.generation_id = live.generation_id AND NOT pair.in_review
                AND (review_end.min_similarity IS NULL OR pair.similarity >= review_end.min_similarity)
                AND (review_end.max_similarity IS NULL OR pair.similarity <= review_end.max_similarity)
            ORDER BY pair.similarity DESC OFFSET nearsim.review_scan(queue) LIMIT 1)
        WHEN queue IN ('threshold', 'ties') THEN (
            SELECT pair.similarity FROM nearsim.similar_pair AS pair
            WHERE pair.generation_id = live.generation_id AND NOT pair.in_review
                AND pair.similarity >= greatest(live.least_similar, review_end.min_similarity)
                AND pair.similarity < live.least_similar + (1 - live.least_similar) / 5
                AND (review_end.max_similarity IS NULL OR pair.similarity <= review_end.max_similarity)
            ORDER BY pair.similarity OFFSET nearsim.review_scan(queue) LIMIT 1)
        END
    FROM (
        SELECT found.generation_id, least(nearsim.least_similarity(found.recipe), 0.999) AS least_similar
        FROM nearsim.live_generation(nearsim.collection_named(collection), profile) AS found
    ) AS live;
END;
COMMENT ON FUNCTION nearsim.review_end(text, text, text, double precision, double precision) IS
    'The similarity at which review_queue stops searching a long queue. To continue, pass it to review_queue as max_similarity, or as min_similarity for the queues threshold and ties. NULL if review_queue searches the whole queue';
