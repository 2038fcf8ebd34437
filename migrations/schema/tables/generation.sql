-- A generation may be built beside the live one, wait for promotion, and be kept for a rollback.
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
    'Number of the generation. Numbers from 100,000,000 on are of large collections, and suffixes of their own tables, as in nearsim_index.band_100000007; others share tables, as nearsim_index.band_shared';
COMMENT ON COLUMN nearsim.generation.profile_id IS 'The profile';
COMMENT ON COLUMN nearsim.generation.state IS
    'building, catching_up, ready, live (answers queries), retired, paused or abandoned';
COMMENT ON COLUMN nearsim.generation.stage IS 'Stage of its build: sign, bands, pairs, clusters, done';
COMMENT ON COLUMN nearsim.generation.figures IS 'Build statistics';
COMMENT ON COLUMN nearsim.generation.created_at IS 'When it was created';
COMMENT ON COLUMN nearsim.generation.live_at IS 'When it last became live';
COMMENT ON COLUMN nearsim.generation.expired_through IS 'Date up to which documents have expired ([retain] age)';
COMMENT ON COLUMN nearsim.generation.bands IS 'Number of bands of a sketch';
COMMENT ON COLUMN nearsim.generation.rows IS 'Number of sketch positions per band';
COMMENT ON COLUMN nearsim.generation.expected_recall IS
    'Probability that two documents exactly at the threshold become candidates; NULL if not recorded';
COMMENT ON COLUMN nearsim.generation.replaces IS
    'The generation that was live when this one was started; NULL for a profile''s first, which becomes live when built';
COMMENT ON COLUMN nearsim.generation.distributed IS
    'Whether its band rows are on the nodes of a Citus cluster; the default is set by nearsim schema init';
COMMENT ON COLUMN nearsim.generation.dropping IS
    'Whether its tables are being dropped, which waits for sessions that read them';
COMMENT ON COLUMN nearsim.generation.ready_at IS 'When it became ready';
COMMENT ON COLUMN nearsim.generation.common_shingles IS
    'Ids of the shingles that it ignores because too many documents have them (match.ignore_common), eight bytes each; NULL if there are none';
COMMENT ON COLUMN nearsim.generation.frequencies IS
    'In how many texts each frequent shingle is, by which shingles are weighted (sketch.weights = idf): entries of an id of eight bytes and a count of four, the first with the number of texts; NULL for other weights';
