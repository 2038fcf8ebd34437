-- Before, a profile had one generation only: what is built beside it, or was retired, has to be dropped first.
DO $$
BEGIN
    IF EXISTS (SELECT FROM nearsim.generation GROUP BY profile_id HAVING count(*) > 1) THEN
        RAISE EXCEPTION 'the schema before this one knows one generation a profile, and there are profiles with several'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Drop the others with: nearsim reindex drop --all';
    END IF;
END
$$;
DROP FUNCTION nearsim.let_answer(integer, text[], integer);
DROP VIEW nearsim.generations;
DROP INDEX nearsim.generation_one_coming;
ALTER TABLE nearsim.generation
    DROP COLUMN replaces,
    DROP COLUMN detached,
    DROP COLUMN dropping,
    DROP COLUMN ready_at,
    DROP COLUMN retired_at;
