CREATE FUNCTION nearsim.reason_of(pair nearsim.pair_evidence, estimate double precision, are_linked boolean)
RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    are_too_few constant boolean := NOT nearsim.is_candidate(pair.recipe, pair.bands);
    metric constant text := nearsim.metric_of(pair.recipe);
    measure constant text := CASE WHEN pair.verified IS FALSE THEN 'estimated ' ELSE '' END || CASE metric WHEN 'euclidean' THEN 'distance' WHEN 'cosine' THEN 'cosine'
        ELSE 'similarity' END;
    is_measured constant boolean := metric = 'euclidean';
    guessed constant numeric := CASE WHEN is_measured THEN 1 / nullif(estimate, 0) - 1 ELSE estimate END;
    scored constant numeric := CASE WHEN is_measured THEN 1 / pair.similarity - 1 ELSE pair.similarity END;
    missed constant text := format('%s the threshold of %s', CASE WHEN is_measured THEN 'above' ELSE 'below' END,
        pair.threshold);
    waiting constant text := nullif(concat_ws('; ',
        'document ' || pair.left_id || ' ' || nearsim.document_state(pair.generation_id, pair.left_id),
        'document ' || pair.right_id || ' ' || nearsim.document_state(pair.generation_id, pair.right_id)), '');
    said constant text := CASE WHEN guessed IS NULL THEN 'their sketches agree in no position'
        ELSE format('their sketches estimate a %s of %s', measure, round(guessed, 4)) END;
    sharing constant text := CASE pair.shared_bands WHEN 0 THEN 'they share no bucket'
        ELSE coalesce(format('they share %s buckets, and not those that ', pair.shared_bands)
                || (pair.recipe #>> '{match,amplification}') || ' requires',
            format('they share %s of the %s buckets that the recipe requires', pair.shared_bands,
                pair.recipe #>> '{match,min_shared_bands}')) END;
    exclusion constant text := (
        SELECT coalesce(nearsim.exclusion_of(pair.recipe, l.feature_digest, r.feature_digest),
            CASE WHEN least(l.feature_count, r.feature_count) < greatest(l.feature_count, r.feature_count)
                    * coalesce(CAST(pair.recipe #>> '{match,length_ratio}' AS numeric), 0)
                THEN format('they have %s and %s features, a ratio below %s (match.length_ratio)',
                    least(l.feature_count, r.feature_count), greatest(l.feature_count, r.feature_count),
                    pair.recipe #>> '{match,length_ratio}') END)
        FROM nearsim.signature AS l JOIN nearsim.signature AS r ON r.generation_id = l.generation_id
        WHERE l.generation_id = pair.generation_id AND l.doc_id = pair.left_id AND r.doc_id = pair.right_id);
    certain constant integer := CAST(pair.recipe #>> '{match,certain_shared_bands}' AS integer);
    are_certain constant boolean := pair.recipe #>> '{match,verify}' = 'bands' OR certain > 0 AND pair.shared_bands >= certain;
BEGIN
    RETURN CASE
        WHEN pair.verdict = 'vetoed' THEN format('%s vetoed them: %s', pair.verdict_by, pair.verdict_why)
        WHEN pair.are_twins THEN 'they are a pair: twins with the same features'
        WHEN pair.is_pair THEN format('they are a pair of %s %s', measure, round(scored, 4))
        WHEN waiting IS NOT NULL THEN waiting
        WHEN exclusion IS NOT NULL THEN exclusion
        WHEN estimate < nearsim.least_similarity(pair.recipe) AND NOT are_certain THEN concat_ws('; ',
            format('%s, %s', said, missed), CASE WHEN are_too_few THEN sharing
                WHEN certain > 0 THEN format('they share %s of the %s buckets that suffice', pair.shared_bands, certain) END)
        WHEN are_too_few THEN format('%s, though %s', sharing, said)
        WHEN NOT are_linked THEN format('the bucket limit excludes them: in no bucket that they share is '
            'one of them among the first %s', pair.recipe #>> '{match,bucket_limit}')
        WHEN are_certain THEN format('they share %s buckets, but the pair is not stored', pair.shared_bands)
        ELSE format('they were compared, and are %s, though %s', missed, said)
    END;
END
$$;
COMMENT ON FUNCTION nearsim.reason_of(nearsim.pair_evidence, double precision, boolean) IS
    'Internal (used by why_not): why two documents are not a pair';
