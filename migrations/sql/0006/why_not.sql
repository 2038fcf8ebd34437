-- A type of its own, because a column of a function may not have the name of a parameter.
CREATE TYPE nearsim.pair_absence AS (
    left_id bigint, right_id bigint, left_external_id text, right_external_id text, profile text, generation_id integer,
    is_pair boolean, shared_bands smallint, estimate real, probability double precision, threshold double precision,
    min_shared_bands integer, verdict text, reason text);
COMMENT ON TYPE nearsim.pair_absence IS 'What why_not answers with';
COMMENT ON COLUMN nearsim.pair_absence.left_id IS 'doc_id of the left document, the smaller one';
COMMENT ON COLUMN nearsim.pair_absence.right_id IS 'doc_id of the right document';
COMMENT ON COLUMN nearsim.pair_absence.left_external_id IS 'external_id of the left document';
COMMENT ON COLUMN nearsim.pair_absence.right_external_id IS 'external_id of the right document';
COMMENT ON COLUMN nearsim.pair_absence.profile IS 'Name of the profile';
COMMENT ON COLUMN nearsim.pair_absence.generation_id IS 'The generation that answers for the profile';
COMMENT ON COLUMN nearsim.pair_absence.is_pair IS 'Whether the index has them as a pair after all';
COMMENT ON COLUMN nearsim.pair_absence.shared_bands IS 'How many bands of the two sketches are equal';
COMMENT ON COLUMN nearsim.pair_absence.estimate IS 'Similarity as estimated from the two sketches';
COMMENT ON COLUMN nearsim.pair_absence.probability IS 'How probable it was that this recipe would see a pair of that similarity';
COMMENT ON COLUMN nearsim.pair_absence.threshold IS 'Similarity from which two documents are a pair';
COMMENT ON COLUMN nearsim.pair_absence.min_shared_bands IS 'How many bands two documents must share to be compared';
COMMENT ON COLUMN nearsim.pair_absence.verdict IS 'pinned or vetoed by a person; NULL for most';
COMMENT ON COLUMN nearsim.pair_absence.reason IS 'Why they are no pair, in plain words';

CREATE FUNCTION nearsim.reason_of(pair nearsim.pair_evidence, estimate double precision, are_linked boolean)
RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shared_least constant integer := pair.recipe #>> '{match,min_shared_bands}';
    waiting constant text := nullif(concat_ws('; ',
        'document ' || pair.left_id || ' ' || nearsim.standing_in(pair.generation_id, pair.left_id),
        'document ' || pair.right_id || ' ' || nearsim.standing_in(pair.generation_id, pair.right_id)), '');
    said constant text := 'their sketches estimate a similarity of ' || round(CAST(estimate AS numeric), 4);
    sharing constant text := CASE pair.shared_bands WHEN 0 THEN 'they share no bucket'
        ELSE format('they share %s of the %s buckets that the recipe asks for', pair.shared_bands, shared_least) END;
BEGIN
    RETURN CASE
        WHEN pair.verdict = 'vetoed' THEN format('%s vetoed them: %s', pair.verdict_by, pair.verdict_why)
        WHEN pair.are_twins THEN 'they are a pair: twins, whose features are the same'
        WHEN pair.is_pair THEN 'they are a pair of similarity ' || round(CAST(pair.similarity AS numeric), 4)
        WHEN waiting IS NOT NULL THEN waiting
        WHEN estimate < pair.threshold THEN concat_ws('; ',
            format('%s, below the threshold of %s', said, pair.threshold),
            CASE WHEN pair.shared_bands < shared_least THEN sharing END)
        WHEN pair.shared_bands < shared_least THEN format('%s, though %s', sharing, said)
        WHEN NOT are_linked THEN format('they were kept apart by the bucket limit: of no bucket that they share is '
            'one among the first %s', pair.recipe #>> '{match,bucket_limit}')
        ELSE format('they were compared, and are below the threshold of %s, though %s', pair.threshold, said)
    END;
END
$$;
COMMENT ON FUNCTION nearsim.reason_of(nearsim.pair_evidence, double precision, boolean) IS
    'Part of why_not: in plain words, why two documents are no pair';

CREATE FUNCTION nearsim.why_not(a bigint, b bigint, profile text DEFAULT NULL) RETURNS SETOF nearsim.pair_absence
LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first_id constant bigint := least(a, b);
    second_id constant bigint := greatest(a, b);
BEGIN
    IF nearsim.collection_of(a) <> nearsim.collection_of(b) THEN
        RETURN QUERY
            SELECT l.doc_id, r.doc_id, l.external_id, r.external_id, CAST(NULL AS text), CAST(NULL AS integer), false,
                CAST(NULL AS smallint), CAST(NULL AS real), CAST(NULL AS double precision),
                CAST(NULL AS double precision), CAST(NULL AS integer), CAST(NULL AS text),
                'they are in different collections, and only documents of one are compared'
            FROM nearsim.document AS l CROSS JOIN nearsim.document AS r
            WHERE l.doc_id = first_id AND r.doc_id = second_id;
        RETURN;
    END IF;
    RETURN QUERY
        SELECT pair.left_id, pair.right_id, pair.left_external_id, pair.right_external_id, pair.profile,
            pair.generation_id, pair.is_pair, pair.shared_bands, pair.estimate,
            nearsim.match_probability(said.estimate, live.bands, live.rows, live.min_shared_bands), pair.threshold,
            live.min_shared_bands, pair.verdict, nearsim.reason_of(pair, said.estimate, said.are_linked)
        FROM nearsim.why(first_id, second_id, why_not.profile) AS pair
        CROSS JOIN nearsim.serving(nearsim.collection_of(first_id), why_not.profile) AS live
        LEFT JOIN nearsim.compare_sketches(live.generation_id, first_id, second_id) AS said ON true;
END
$$;
COMMENT ON FUNCTION nearsim.why_not(bigint, bigint, text) IS
    'Why two documents are no pair: the bands they share, the similarity that their sketches estimate, the probability that this recipe would have seen a pair of that similarity, and the reason in plain words';

CREATE FUNCTION nearsim.why_not(a text, b text, profile text DEFAULT NULL, collection text DEFAULT NULL)
RETURNS SETOF nearsim.pair_absence
LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.why_not(
        nearsim.document_named(a, collection), nearsim.document_named(b, collection), profile);
END
$$;
COMMENT ON FUNCTION nearsim.why_not(text, text, text, text) IS
    'Why two documents, which are told by their external_ids, are no pair';
