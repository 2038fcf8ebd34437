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
SELECT nearsim.grant_rights();
