-- A generation may be built beside the live generation, wait for its promotion, and be kept for a rollback.
CREATE TABLE nearsim.generation (
    generation_id integer GENERATED ALWAYS AS IDENTITY (MAXVALUE 99999999) PRIMARY KEY,
    profile_id integer NOT NULL CONSTRAINT generation_profile_fkey
        REFERENCES nearsim.profile ON DELETE CASCADE,
    state text NOT NULL DEFAULT 'building',
    stage text NOT NULL DEFAULT 'sign',
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
    distributed boolean NOT NULL DEFAULT false,
    dropping boolean NOT NULL DEFAULT false,
    ready_at timestamptz,
    retired_at timestamptz,
    common_shingles bytea,
    frequencies bytea,
    CONSTRAINT generation_state_known CHECK
        (state IN ('building', 'catching_up', 'ready', 'live', 'retired', 'paused', 'abandoned')),
    CONSTRAINT generation_stage_known CHECK (stage IN ('sign', 'bands', 'pairs', 'clusters', 'done'))
);
CREATE UNIQUE INDEX generation_one_live ON nearsim.generation (profile_id) WHERE state = 'live';
CREATE UNIQUE INDEX generation_one_pending ON nearsim.generation (profile_id)
    WHERE state IN ('building', 'catching_up', 'ready', 'paused');
CREATE INDEX generation_profile ON nearsim.generation (profile_id);
CREATE INDEX generation_dropping ON nearsim.generation (generation_id) WHERE dropping;

COMMENT ON TABLE nearsim.generation IS 'One build of a profile''s index, with its complete recipe and its fingerprint';
COMMENT ON COLUMN nearsim.generation.generation_id IS
    'Number of the generation. Generations of large collections have numbers from 100,000,000 on and tables of their own with this number as suffix, such as nearsim_index.band_100000007; other generations share tables, such as nearsim_index.band_shared';
COMMENT ON COLUMN nearsim.generation.profile_id IS 'The profile';
COMMENT ON COLUMN nearsim.generation.state IS
    'building, catching_up, ready, live (this generation answers queries), retired, paused or abandoned';
COMMENT ON COLUMN nearsim.generation.stage IS 'Stage of its build: sign, bands, pairs, clusters, done';
COMMENT ON COLUMN nearsim.generation.figures IS 'Counts of the build';
COMMENT ON COLUMN nearsim.generation.created_at IS 'When it was created';
COMMENT ON COLUMN nearsim.generation.live_at IS 'When it last became live';
COMMENT ON COLUMN nearsim.generation.expired_through IS 'Documents from before this time have expired ([retain] age)';
COMMENT ON COLUMN nearsim.generation.bands IS 'Number of bands of a sketch';
COMMENT ON COLUMN nearsim.generation.rows IS 'Number of sketch positions per band';
COMMENT ON COLUMN nearsim.generation.expected_recall IS
    'Probability that two documents exactly at the threshold become candidates; NULL if not recorded';
COMMENT ON COLUMN nearsim.generation.replaces IS
    'The generation that was live when this one was started; NULL for the first generation of a profile, which becomes live as soon as it is built';
COMMENT ON COLUMN nearsim.generation.distributed IS
    'Whether its band rows are on the nodes of a Citus cluster; nearsim schema init sets the default';
COMMENT ON COLUMN nearsim.generation.dropping IS
    'Whether its tables are being dropped; this waits for sessions that read them';
COMMENT ON COLUMN nearsim.generation.ready_at IS 'When it became ready';
COMMENT ON COLUMN nearsim.generation.common_shingles IS
    'Ids, of eight bytes each, of the shingles that are ignored because too many documents have them (match.ignore_common); NULL if there are none';
COMMENT ON COLUMN nearsim.generation.frequencies IS
    'Number of texts that contain each frequent shingle, from which the weights of shingles are computed (sketch.weights = idf). Each entry is an id of eight bytes and a count of four bytes; the first entry has the number of all texts. NULL for other weights';
