-- The functions, types and views of before are made anew by their own files, once what stands in their way is gone.
DO $$
DECLARE
    known text;
BEGIN
    SELECT string_agg(format('%s of %s', quote_literal(profile.name), quote_literal(collection.name)), ', ')
    INTO known
    FROM nearsim.profile JOIN nearsim.collection USING (collection_id)
    WHERE EXISTS (SELECT FROM nearsim.generation WHERE generation.profile_id = profile.profile_id
        AND nearsim.metric_of(generation.recipe) <> 'jaccard');
    IF known IS NOT NULL THEN
        RAISE EXCEPTION 'the schema before this one knows no metric but Jaccard, and there are profiles with others: %',
            known USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Delete these profiles first.';
    END IF;
END
$$;

DO $$
DECLARE
    known text;
BEGIN
    SELECT string_agg(format('%s of %s', quote_literal(profile.name), quote_literal(collection.name)), ', ')
    INTO known
    FROM nearsim.profile JOIN nearsim.collection USING (collection_id)
    WHERE EXISTS (SELECT FROM nearsim.generation WHERE generation.profile_id = profile.profile_id
        AND generation.recipe #>> '{match,amplification}' IS NOT NULL);
    IF known IS NOT NULL THEN
        RAISE EXCEPTION 'the schema before this one knows no amplifications, and there are profiles with one: %',
            known USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Delete these profiles first.';
    END IF;
END
$$;

DROP VIEW nearsim.profiles;
DROP FUNCTION nearsim.curve(text);
DROP FUNCTION nearsim.match_probability(double precision, text);
DROP FUNCTION nearsim.meets(jsonb, smallint[]);
DROP FUNCTION nearsim.amplification_of(jsonb, integer, integer);
DROP FUNCTION nearsim.steps_of(text);
ALTER TABLE nearsim.generation DROP COLUMN expected_recall;

DROP VIEW nearsim.pairs;
DROP FUNCTION nearsim.answer_to(bigint);
DROP FUNCTION nearsim.similar_to_text(bigint);
DROP FUNCTION nearsim.why_not(text, text, text, text);
DROP FUNCTION nearsim.why_not(bigint, bigint, text);
DROP FUNCTION nearsim.reason_of(nearsim.pair_evidence, double precision, boolean);
DROP TYPE nearsim.pair_absence;
DROP FUNCTION nearsim.why(text, text, text, text);
DROP FUNCTION nearsim.why(bigint, bigint, text);
DROP FUNCTION nearsim.common_collection(bigint, bigint);
DROP FUNCTION nearsim.side_of(integer, bigint);
DROP TYPE nearsim.pair_evidence;
DROP FUNCTION nearsim.similar_to(text, double precision, integer, text, text);
DROP FUNCTION nearsim.similar_to(bigint, double precision, integer, text);
DROP TYPE nearsim.similar_document;
DROP FUNCTION nearsim.pairs_of(integer, bigint, double precision, integer);
DROP FUNCTION nearsim.collision_probability(jsonb, double precision);
DROP FUNCTION nearsim.width_of(jsonb);
DROP FUNCTION nearsim.ratio_of_chance(double precision);
DROP FUNCTION nearsim.chance_of_bucket(double precision);
DROP FUNCTION nearsim.least_similarity(jsonb);
DROP FUNCTION nearsim.metric_of(jsonb);

DO $$
DECLARE
    name regclass;
BEGIN
    FOR name IN
        SELECT oid FROM pg_class
        WHERE relnamespace = CAST('nearsim' AS regnamespace) AND (relname = 'similar_pair'
            OR relname ~ '^similar_pair_[0-9]+$' AND relkind = 'r' AND NOT relispartition)
        ORDER BY oid
    LOOP
        EXECUTE format($command$
            ALTER TABLE %s
                DROP CONSTRAINT similar_pair_distance_possible,
                DROP CONSTRAINT similar_pair_counts,
                DROP COLUMN distance,
                ALTER COLUMN intersection_size SET NOT NULL,
                ALTER COLUMN union_size SET NOT NULL,
                ADD CONSTRAINT similar_pair_counts CHECK (
                    intersection_size BETWEEN 0 AND union_size AND union_size > 0)
            $command$, name);
    END LOOP;
END
$$;
COMMENT ON COLUMN nearsim.similar_pair.similarity IS 'Verified similarity, at or above the recipe''s threshold';
COMMENT ON COLUMN nearsim.similar_pair.intersection_size IS 'How many features both have';
COMMENT ON COLUMN nearsim.similar_pair.union_size IS 'How many features either has';

-- Answers under profiles that are gone; an answer is kept for an hour.
DELETE FROM nearsim.probe_match WHERE intersection_size IS NULL OR union_size IS NULL;
ALTER TABLE nearsim.probe_match
    DROP COLUMN distance,
    ALTER COLUMN intersection_size SET NOT NULL,
    ALTER COLUMN union_size SET NOT NULL;
COMMENT ON COLUMN nearsim.probe_match.similarity IS 'intersection_size / union_size';
COMMENT ON COLUMN nearsim.probe_match.intersection_size IS 'How many distinct features the two texts share';
COMMENT ON COLUMN nearsim.probe_match.union_size IS 'How many distinct features they have together';

COMMENT ON COLUMN nearsim.live_generations.threshold IS 'Similarity from which two documents are a pair';
COMMENT ON COLUMN nearsim.live_generations.min_shared_bands IS 'How many bands two documents must share to be compared';
