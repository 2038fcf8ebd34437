-- A generation may be built beside the one that answers, wait to be promoted, and stay for a rollback.
CREATE TABLE nearsim.generation (
    generation_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    profile_id integer NOT NULL CONSTRAINT generation_profile_fkey
        REFERENCES nearsim.profile ON DELETE CASCADE,
    state text NOT NULL DEFAULT 'building',
    stage text NOT NULL DEFAULT 'sign',
    verified_through bigint NOT NULL DEFAULT 0,
    recipe jsonb NOT NULL,
    fingerprint text NOT NULL,
    figures jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    live_at timestamptz,
    expired_through timestamptz,
    bands smallint,
    rows smallint,
    expected_recall double precision,
    replaces integer,
    detached boolean NOT NULL DEFAULT false,
    dropping boolean NOT NULL DEFAULT false,
    ready_at timestamptz,
    retired_at timestamptz,
    told_left_id bigint,
    told_right_id bigint,
    CONSTRAINT generation_state_known CHECK
        (state IN ('building', 'catching_up', 'ready', 'live', 'retired', 'paused', 'abandoned')),
    CONSTRAINT generation_stage_known CHECK (stage IN ('sign', 'bands', 'pairs', 'clusters', 'done')),
    CONSTRAINT generation_told_while_live CHECK (
        (told_left_id IS NULL) = (told_right_id IS NULL) AND (told_left_id IS NULL OR state = 'live'))
);
CREATE UNIQUE INDEX generation_one_live ON nearsim.generation (profile_id) WHERE state = 'live';
CREATE UNIQUE INDEX generation_one_coming ON nearsim.generation (profile_id)
    WHERE state IN ('building', 'catching_up', 'ready', 'paused');

COMMENT ON TABLE nearsim.generation IS
    'One build of a profile, with its whole recipe and the fingerprint of what makes its sketches';
COMMENT ON COLUMN nearsim.generation.generation_id IS
    'Number of the generation; its own tables end in it, as nearsim_index.band_7';
COMMENT ON COLUMN nearsim.generation.profile_id IS
    'The profile it is a build of';
COMMENT ON COLUMN nearsim.generation.state IS
    'building, catching_up, ready, live (answers), retired, paused or abandoned';
COMMENT ON COLUMN nearsim.generation.stage IS
    'How far its build has come: sign, bands, pairs, clusters, done';
COMMENT ON COLUMN nearsim.generation.verified_through IS
    'The doc_id up to which a build has verified pairs';
COMMENT ON COLUMN nearsim.generation.recipe IS
    'The whole recipe, every default spelled out';
COMMENT ON COLUMN nearsim.generation.fingerprint IS
    'SHA-256 of all that decides sketches, bands and pairs';
COMMENT ON COLUMN nearsim.generation.figures IS
    'What its build counted';
COMMENT ON COLUMN nearsim.generation.created_at IS
    'When it was made';
COMMENT ON COLUMN nearsim.generation.live_at IS
    'Since when it answers, or did';
COMMENT ON COLUMN nearsim.generation.expired_through IS
    'The date up to which documents have left its window';
COMMENT ON COLUMN nearsim.generation.bands IS
    'How many bands a sketch is cut into';
COMMENT ON COLUMN nearsim.generation.rows IS
    'How many values of the sketch make one band';
COMMENT ON COLUMN nearsim.generation.expected_recall IS
    'Probability that two documents right at the threshold become candidates; NULL where it was not written down';
COMMENT ON COLUMN nearsim.generation.replaces IS
    'The generation that answered when this one was begun beside it; NULL for the first of a profile, which goes live by itself';
COMMENT ON COLUMN nearsim.generation.detached IS 'Whether its build is left to the workers';
COMMENT ON COLUMN nearsim.generation.dropping IS 'Whether its tables are being dropped, which waits for who still reads them';
COMMENT ON COLUMN nearsim.generation.ready_at IS 'When it had caught up with the documents';
COMMENT ON COLUMN nearsim.generation.retired_at IS 'When it ceased to answer; NULL while it does, or never did';
COMMENT ON COLUMN nearsim.generation.told_left_id IS
    'The left document of the last pair, or the cluster, that was told of since it answers; NULL once all are';
COMMENT ON COLUMN nearsim.generation.told_right_id IS
    'The right document of that pair, or the largest number after a cluster';
