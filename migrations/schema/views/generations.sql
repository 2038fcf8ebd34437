-- All generations, whatever their state.
CREATE VIEW nearsim.generations WITH (security_invoker = true) AS
SELECT collection.name AS collection, profile.name AS profile, collection.collection_id, profile.profile_id,
    generation.generation_id, generation.state, generation.stage,
    generation.bands, generation.rows, generation.created_at, generation.live_at, generation.expired_through,
    generation.fingerprint, generation.figures, generation.recipe,
    generation.replaces, generation.detached, generation.dropping, generation.ready_at, generation.retired_at
FROM nearsim.generation
JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id);

COMMENT ON VIEW nearsim.generations IS 'All builds of all profiles, in any state; the other views show only live generations';
COMMENT ON COLUMN nearsim.generations.generation_id IS
    'Number of the generation. If it is 100,000,000 or more, it is also the suffix of the generation''s own tables, such as nearsim_index.band_100000007';
COMMENT ON COLUMN nearsim.generations.state IS 'building, catching_up, ready, live, retired, paused or abandoned';
COMMENT ON COLUMN nearsim.generations.stage IS 'Stage of its build: sign, bands, pairs, clusters, done';
COMMENT ON COLUMN nearsim.generations.bands IS 'Number of bands of a sketch; NULL before they are chosen';
COMMENT ON COLUMN nearsim.generations.rows IS 'Number of sketch positions per band; NULL before they are chosen';
COMMENT ON COLUMN nearsim.generations.created_at IS 'When it was created';
COMMENT ON COLUMN nearsim.generations.live_at IS 'When it last became live; NULL if it never did';
COMMENT ON COLUMN nearsim.generations.expired_through IS 'Documents from before this time have expired ([retain] age); NULL if none have';
COMMENT ON COLUMN nearsim.generations.figures IS 'Counts of the build';
COMMENT ON COLUMN nearsim.generations.replaces IS 'The generation that was live when this one was started; NULL for the first generation of a profile';
COMMENT ON COLUMN nearsim.generations.dropping IS 'Whether its tables are being dropped';
COMMENT ON COLUMN nearsim.generations.ready_at IS 'When it became ready; NULL if it never did';
