-- Types of their own, because a column of a function may not have the name of a parameter.
CREATE TYPE nearsim.pair_evidence AS (
    left_id bigint, right_id bigint, left_external_id text, right_external_id text, profile text, generation_id integer,
    is_pair boolean, are_twins boolean, similarity double precision, estimate real, intersection_size integer,
    union_size integer, shared_bands smallint, bands smallint[], numbers_differ boolean, numbers_only_left text[],
    numbers_only_right text[], verified_at timestamptz, threshold double precision, recipe jsonb, verdict text,
    verdict_by text, verdict_why text, same_cluster boolean);
COMMENT ON TYPE nearsim.pair_evidence IS 'What why answers with';
COMMENT ON COLUMN nearsim.pair_evidence.left_id IS 'doc_id of the left document, the smaller one';
COMMENT ON COLUMN nearsim.pair_evidence.right_id IS 'doc_id of the right document';
COMMENT ON COLUMN nearsim.pair_evidence.left_external_id IS 'external_id of the left document';
COMMENT ON COLUMN nearsim.pair_evidence.right_external_id IS 'external_id of the right document';
COMMENT ON COLUMN nearsim.pair_evidence.profile IS 'Name of the profile';
COMMENT ON COLUMN nearsim.pair_evidence.generation_id IS 'The generation that answers for the profile';
COMMENT ON COLUMN nearsim.pair_evidence.is_pair IS 'Whether the index has them as a pair; where not, ask why_not';
COMMENT ON COLUMN nearsim.pair_evidence.are_twins IS 'Whether their features are equal';
COMMENT ON COLUMN nearsim.pair_evidence.similarity IS 'Verified similarity; NULL where they are no pair';
COMMENT ON COLUMN nearsim.pair_evidence.estimate IS 'Similarity as estimated from the two sketches';
COMMENT ON COLUMN nearsim.pair_evidence.intersection_size IS 'How many features both have; NULL where they are no pair';
COMMENT ON COLUMN nearsim.pair_evidence.union_size IS 'How many features either has; NULL where they are no pair';
COMMENT ON COLUMN nearsim.pair_evidence.shared_bands IS 'How many bands of the two sketches are equal';
COMMENT ON COLUMN nearsim.pair_evidence.bands IS 'Which bands, from 0';
COMMENT ON COLUMN nearsim.pair_evidence.numbers_differ IS 'Whether the runs of digits in their texts differ';
COMMENT ON COLUMN nearsim.pair_evidence.numbers_only_left IS 'Runs of digits that the right text lacks, as often as it lacks them; NULL while a text is newer than the index';
COMMENT ON COLUMN nearsim.pair_evidence.numbers_only_right IS 'Runs of digits that the left text lacks, as often as it lacks them; NULL while a text is newer than the index';
COMMENT ON COLUMN nearsim.pair_evidence.verified_at IS 'When the similarity was computed; NULL for twins';
COMMENT ON COLUMN nearsim.pair_evidence.threshold IS 'Similarity from which two documents are a pair';
COMMENT ON COLUMN nearsim.pair_evidence.recipe IS 'The whole recipe, every default spelled out';
COMMENT ON COLUMN nearsim.pair_evidence.verdict IS 'pinned or vetoed by a person; NULL for most';
COMMENT ON COLUMN nearsim.pair_evidence.verdict_by IS 'Who decided so';
COMMENT ON COLUMN nearsim.pair_evidence.verdict_why IS 'Their reason';
COMMENT ON COLUMN nearsim.pair_evidence.same_cluster IS 'Whether both are in one cluster';

CREATE FUNCTION nearsim.side_of(
    generation_id integer, doc_id bigint, OUT external_id text, OUT head_id bigint, OUT feature_count integer,
    OUT numbers_digest bigint, OUT cluster_id bigint, OUT is_behind boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan
BEGIN ATOMIC
    SELECT document.external_id, signature.head_id, signature.feature_count, signature.numbers_digest, member.cluster_id,
        coalesce(signature.revision < document.revision, false)
    FROM nearsim.document
    LEFT JOIN nearsim.signature
        ON signature.generation_id = side_of.generation_id AND signature.doc_id = side_of.doc_id
    LEFT JOIN nearsim.cluster_member AS member
        ON member.generation_id = side_of.generation_id AND member.doc_id = side_of.doc_id
    WHERE document.doc_id = side_of.doc_id;
END;
COMMENT ON FUNCTION nearsim.side_of(integer, bigint) IS
    'Part of why: a document as a generation has it';

CREATE FUNCTION nearsim.common_collection(a bigint, b bigint) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home constant integer := nearsim.collection_of(a);
BEGIN
    IF home <> nearsim.collection_of(b) THEN
        RAISE EXCEPTION 'documents % and % are in different collections, and only documents of one are compared', a, b
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF a = b THEN
        RAISE EXCEPTION 'document % cannot be compared with itself', a USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN home;
END
$$;
COMMENT ON FUNCTION nearsim.common_collection(bigint, bigint) IS
    'Part of why: the collection of two documents; an error unless there are two, of one collection';

-- Relies on the leaves' keys, reached through the parents by generation_id, and on verdict_one_standing.
CREATE FUNCTION nearsim.why(a bigint, b bigint, profile text DEFAULT NULL) RETURNS SETOF nearsim.pair_evidence
LANGUAGE plpgsql STABLE ROWS 1
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off AS $$
DECLARE
    first_id constant bigint := least(a, b);
    second_id constant bigint := greatest(a, b);
    live record;
BEGIN
    SELECT * INTO STRICT live FROM nearsim.serving(nearsim.common_collection(a, b), profile);
    RETURN QUERY
        SELECT first_id, second_id, l.external_id, r.external_id, live.profile_name, live.generation_id,
            twins.are OR pair.left_id IS NOT NULL, twins.are,
            CASE WHEN twins.are THEN 1 ELSE pair.similarity END, CAST(said.estimate AS real),
            CASE WHEN twins.are THEN l.feature_count ELSE pair.intersection_size END,
            CASE WHEN twins.are THEN l.feature_count ELSE pair.union_size END,
            CAST(cardinality(said.bands) AS smallint), said.bands, l.numbers_digest <> r.numbers_digest,
            nearsim.numbers_missing(numbers.left_ones, numbers.right_ones),
            nearsim.numbers_missing(numbers.right_ones, numbers.left_ones),
            pair.verified_at, live.threshold, live.recipe, verdict.verdict, verdict.by, verdict.why,
            coalesce(l.cluster_id = r.cluster_id, false)
        FROM nearsim.side_of(live.generation_id, first_id) AS l
        CROSS JOIN nearsim.side_of(live.generation_id, second_id) AS r
        LEFT JOIN nearsim.compare_sketches(live.generation_id, first_id, second_id) AS said ON true
        LEFT JOIN LATERAL (
            SELECT stored.* FROM nearsim.similar_pair AS stored
            WHERE stored.generation_id = live.generation_id AND stored.left_id = least(l.head_id, r.head_id)
                AND stored.right_id = greatest(l.head_id, r.head_id) LIMIT 1
        ) AS pair ON true
        LEFT JOIN nearsim.verdict
            ON verdict.left_id = first_id AND verdict.right_id = second_id AND verdict.undone_at IS NULL
        CROSS JOIN LATERAL (SELECT coalesce(said.are_twins, false) AS are) AS twins
        -- Of texts that were not indexed yet they would not be those that numbers_differ tells of.
        LEFT JOIN LATERAL (
            SELECT nearsim.numbers_of(first_id, live.recipe) AS left_ones,
                nearsim.numbers_of(second_id, live.recipe) AS right_ones
            WHERE NOT (l.is_behind OR r.is_behind) OFFSET 0
        ) AS numbers ON true;
END
$$;
COMMENT ON FUNCTION nearsim.why(bigint, bigint, text) IS
    'Everything that is known of two documents as a pair, the one with the smaller doc_id on the left: scores, the shared bands (from 0), which numbers differ (numbers_only_left and numbers_only_right are NULL while one has a newer text than the one indexed), what a person decided, and the recipe. is_pair tells whether they are one; where they are not, ask why_not';

CREATE FUNCTION nearsim.why(a text, b text, profile text DEFAULT NULL, collection text DEFAULT NULL)
RETURNS SETOF nearsim.pair_evidence
LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.why(
        nearsim.document_named(a, collection), nearsim.document_named(b, collection), profile);
END
$$;
COMMENT ON FUNCTION nearsim.why(text, text, text, text) IS
    'Everything that is known of two documents as a pair, which are told by their external_ids';
