-- The functions and the view of before are made anew by their own files.
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
COMMENT ON COLUMN nearsim.pair_absence.min_shared_bands IS 'How many bands two documents must share to be compared';
COMMENT ON COLUMN nearsim.live_generations.min_shared_bands IS 'How many bands two documents must share to be compared';
