-- A generation may be built beside the one that answers, wait to be promoted, and stay for a rollback.
ALTER TABLE nearsim.generation
    ADD COLUMN replaces integer,
    ADD COLUMN detached boolean NOT NULL DEFAULT false,
    ADD COLUMN dropping boolean NOT NULL DEFAULT false,
    ADD COLUMN ready_at timestamptz,
    ADD COLUMN retired_at timestamptz;
COMMENT ON COLUMN nearsim.generation.replaces IS
    'The generation that answered when this one was begun beside it; NULL for the first of a profile, which goes live by itself';
COMMENT ON COLUMN nearsim.generation.detached IS 'Whether its build is left to the workers';
COMMENT ON COLUMN nearsim.generation.dropping IS 'Whether its tables are being dropped, which waits for who still reads them';
COMMENT ON COLUMN nearsim.generation.ready_at IS 'When it had caught up with the documents';
COMMENT ON COLUMN nearsim.generation.retired_at IS 'When it ceased to answer; NULL while it does, or never did';
CREATE UNIQUE INDEX generation_one_coming ON nearsim.generation (profile_id)
    WHERE state IN ('building', 'catching_up', 'ready', 'paused');

CREATE OR REPLACE VIEW nearsim.generations WITH (security_invoker = true) AS
SELECT collection.name AS collection, profile.name AS profile, collection.collection_id, profile.profile_id,
    generation.generation_id, generation.state, generation.stage, generation.verified_through,
    generation.bands, generation.rows, generation.created_at, generation.live_at, generation.expired_through,
    generation.fingerprint, generation.figures, generation.recipe,
    generation.replaces, generation.detached, generation.dropping, generation.ready_at, generation.retired_at
FROM nearsim.generation
JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id)
WHERE NOT collection.temporary;
COMMENT ON COLUMN nearsim.generations.replaces IS 'The generation that answered when this one was begun beside it';
COMMENT ON COLUMN nearsim.generations.detached IS 'Whether its build is left to the workers';
COMMENT ON COLUMN nearsim.generations.dropping IS 'Whether its tables are being dropped';
COMMENT ON COLUMN nearsim.generations.ready_at IS 'When it had caught up with the documents';
COMMENT ON COLUMN nearsim.generations.retired_at IS 'When it ceased to answer';

-- All of a promotion in one call, so that what it locks is not held while a client is slow. Rows are locked in one order, so
-- that two who promote do not wait for each other; locks are not waited for long, at the commit neither.
CREATE FUNCTION nearsim.let_answer(generation_id integer, expected text[], wait_milliseconds integer,
    OUT state text, OUT retired_id integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted constant integer := (SELECT profile_id FROM nearsim.generation AS own
        WHERE own.generation_id = let_answer.generation_id);
BEGIN
    PERFORM set_config('lock_timeout', wait_milliseconds || 'ms', true);
    PERFORM FROM nearsim.generation AS own WHERE own.profile_id = wanted ORDER BY own.generation_id FOR NO KEY UPDATE;
    SELECT own.state INTO state FROM nearsim.generation AS own WHERE own.generation_id = let_answer.generation_id;
    IF state = ANY (expected) THEN
        UPDATE nearsim.generation AS own SET state = 'retired', retired_at = clock_timestamp()
        WHERE own.profile_id = wanted AND own.state = 'live' RETURNING own.generation_id INTO retired_id;
        UPDATE nearsim.generation AS own SET state = 'live', live_at = clock_timestamp(), retired_at = NULL
        WHERE own.generation_id = let_answer.generation_id;
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.let_answer(integer, text[], integer) IS
    'Part of nearsim reindex promote: retires the live generation of a profile and makes another live; tells the state it was in, unless that was expected nothing is done';
SELECT nearsim.grant_rights();
