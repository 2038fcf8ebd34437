-- The whole promotion is one call, so that no lock is held while a slow client waits. It first waits for transactions that
-- insert texts after a check in the live generation: insertions after the promotion use other buckets and would not see them.
-- Rows are locked in order, so that two promotions cannot deadlock. Lock waits are limited, also at commit.
CREATE FUNCTION nearsim.promote_generation(generation_id integer, expected text[], wait_milliseconds integer,
    OUT state text, OUT retired_id integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted constant integer := (SELECT profile_id FROM nearsim.generation AS own
        WHERE own.generation_id = promote_generation.generation_id);
BEGIN
    PERFORM set_config('lock_timeout', wait_milliseconds || 'ms', true);
    PERFORM pg_advisory_xact_lock(nearsim.insertion_lock(profile.collection_id))
    FROM nearsim.profile WHERE profile.profile_id = wanted;
    PERFORM FROM nearsim.generation AS own WHERE own.profile_id = wanted ORDER BY own.generation_id FOR NO KEY UPDATE;
    SELECT own.state INTO state FROM nearsim.generation AS own WHERE own.generation_id = promote_generation.generation_id;
    IF state = ANY (expected) THEN
        UPDATE nearsim.generation AS own SET state = 'retired', retired_at = clock_timestamp()
        WHERE own.profile_id = wanted AND own.state = 'live' RETURNING own.generation_id INTO retired_id;
        UPDATE nearsim.generation AS own SET state = 'live', live_at = clock_timestamp(), retired_at = NULL
        WHERE own.generation_id = promote_generation.generation_id;
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.promote_generation(integer, text[], integer) IS
    'Internal (used by nearsim reindex promote): retires a profile''s live generation and makes another generation live, provided that the state of the latter is one of the expected states; returns the state that it had';
