-- All generations, whatever their state.
CREATE VIEW nearsim.generations WITH (security_invoker = true) AS
SELECT collection.name AS collection, profile.name AS profile, collection.collection_id, profile.profile_id,
    generation.generation_id, generation.state, generation.stage, generation.verified_through,
    generation.bands, generation.rows, generation.created_at, generation.live_at, generation.expired_through,
    generation.fingerprint, generation.figures, generation.recipe,
    generation.replaces, generation.detached, generation.dropping, generation.ready_at, generation.retired_at
FROM nearsim.generation
JOIN nearsim.profile USING (profile_id)
JOIN nearsim.collection USING (collection_id)
WHERE NOT collection.temporary;

COMMENT ON VIEW nearsim.generations IS
    'Every build of every profile in whatever state; the other views show live ones only';
COMMENT ON COLUMN nearsim.generations.collection IS 'Name of the collection';
COMMENT ON COLUMN nearsim.generations.profile IS 'Name of the profile';
COMMENT ON COLUMN nearsim.generations.collection_id IS 'Number of the collection';
COMMENT ON COLUMN nearsim.generations.profile_id IS 'Number of the profile';
COMMENT ON COLUMN nearsim.generations.generation_id IS 'Number of the generation; its own tables end in it, as nearsim_index.band_7';
COMMENT ON COLUMN nearsim.generations.state IS 'building, catching_up, ready, live, retired, paused or abandoned';
COMMENT ON COLUMN nearsim.generations.stage IS 'How far its build has come: sign, bands, pairs, clusters, done';
COMMENT ON COLUMN nearsim.generations.verified_through IS 'The doc_id up to which a build has verified pairs';
COMMENT ON COLUMN nearsim.generations.bands IS 'How many bands a sketch is cut into';
COMMENT ON COLUMN nearsim.generations.rows IS 'How many values of the sketch make one band';
COMMENT ON COLUMN nearsim.generations.created_at IS 'When it was made';
COMMENT ON COLUMN nearsim.generations.live_at IS 'Since when it answers, or did';
COMMENT ON COLUMN nearsim.generations.expired_through IS 'The date up to which documents have left its window';
COMMENT ON COLUMN nearsim.generations.fingerprint IS 'SHA-256 of all that decides sketches, bands and pairs';
COMMENT ON COLUMN nearsim.generations.figures IS 'What its build counted';
COMMENT ON COLUMN nearsim.generations.recipe IS 'The whole recipe, every default spelled out';
COMMENT ON COLUMN nearsim.generations.replaces IS 'The generation that answered when this one was begun beside it';
COMMENT ON COLUMN nearsim.generations.detached IS 'Whether its build is left to the workers';
COMMENT ON COLUMN nearsim.generations.dropping IS 'Whether its tables are being dropped';
COMMENT ON COLUMN nearsim.generations.ready_at IS 'When it had caught up with the documents';
COMMENT ON COLUMN nearsim.generations.retired_at IS 'When it ceased to answer';
