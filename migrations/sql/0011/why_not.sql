-- The functions of 0006 in the words of every metric, with the probability that its sketches agree, and with amplifications.
COMMENT ON COLUMN nearsim.pair_absence.threshold IS
    'Similarity from which two documents are a pair; for projection the largest distance';

CREATE OR REPLACE FUNCTION nearsim.reason_of(pair nearsim.pair_evidence, estimate double precision, are_linked boolean)
RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    are_too_few constant boolean := NOT nearsim.meets(pair.recipe, pair.bands);
    metric constant text := nearsim.metric_of(pair.recipe);
    measure constant text := CASE metric WHEN 'euclidean' THEN 'distance' WHEN 'cosine' THEN 'cosine'
        ELSE 'similarity' END;
    is_measured constant boolean := metric = 'euclidean';
    guessed constant numeric := CASE WHEN is_measured THEN 1 / nullif(estimate, 0) - 1 ELSE estimate END;
    scored constant numeric := CASE WHEN is_measured THEN 1 / pair.similarity - 1 ELSE pair.similarity END;
    missed constant text := format('%s the threshold of %s', CASE WHEN is_measured THEN 'above' ELSE 'below' END,
        pair.threshold);
    waiting constant text := nullif(concat_ws('; ',
        'document ' || pair.left_id || ' ' || nearsim.standing_in(pair.generation_id, pair.left_id),
        'document ' || pair.right_id || ' ' || nearsim.standing_in(pair.generation_id, pair.right_id)), '');
    said constant text := CASE WHEN guessed IS NULL THEN 'their sketches agree in nothing'
        ELSE format('their sketches estimate a %s of %s', measure, round(guessed, 4)) END;
    sharing constant text := CASE pair.shared_bands WHEN 0 THEN 'they share no bucket'
        ELSE coalesce(format('they share %s buckets, and not those that ', pair.shared_bands)
                || (pair.recipe #>> '{match,amplification}') || ' asks for',
            format('they share %s of the %s buckets that the recipe asks for', pair.shared_bands,
                pair.recipe #>> '{match,min_shared_bands}')) END;
BEGIN
    RETURN CASE
        WHEN pair.verdict = 'vetoed' THEN format('%s vetoed them: %s', pair.verdict_by, pair.verdict_why)
        WHEN pair.are_twins THEN 'they are a pair: twins, whose features are the same'
        WHEN pair.is_pair THEN format('they are a pair of %s %s', measure, round(scored, 4))
        WHEN waiting IS NOT NULL THEN waiting
        WHEN estimate < nearsim.least_similarity(pair.recipe) THEN concat_ws('; ',
            format('%s, %s', said, missed), CASE WHEN are_too_few THEN sharing END)
        WHEN are_too_few THEN format('%s, though %s', sharing, said)
        WHEN NOT are_linked THEN format('they were kept apart by the bucket limit: of no bucket that they share is '
            'one among the first %s', pair.recipe #>> '{match,bucket_limit}')
        ELSE format('they were compared, and are %s, though %s', missed, said)
    END;
END
$$;

CREATE OR REPLACE FUNCTION nearsim.why_not(a bigint, b bigint, profile text DEFAULT NULL) RETURNS SETOF nearsim.pair_absence
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
            nearsim.match_probability(nearsim.collision_probability(live.recipe, said.estimate),
                nearsim.amplification_of(live.recipe, live.bands, live.rows)),
            pair.threshold, live.min_shared_bands, pair.verdict, nearsim.reason_of(pair, said.estimate, said.are_linked)
        FROM nearsim.why(first_id, second_id, why_not.profile) AS pair
        CROSS JOIN nearsim.serving(nearsim.collection_of(first_id), why_not.profile) AS live
        LEFT JOIN nearsim.compare_sketches(live.generation_id, first_id, second_id) AS said ON true;
END
$$;

COMMENT ON COLUMN nearsim.pair_absence.min_shared_bands IS
    'How many bands two documents must share to be compared; 1 where the recipe has an amplification instead';
