CREATE TABLE nearsim.lease (
    lease_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    worker text NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT now(),
    beat_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE nearsim.lease IS
    'Processes at work, each holding an advisory lock as long as it lives; their work is free again when they are gone';
COMMENT ON COLUMN nearsim.lease.lease_id IS
    'Number of the lease';
COMMENT ON COLUMN nearsim.lease.worker IS
    'The process that holds it, as host and number';
COMMENT ON COLUMN nearsim.lease.taken_at IS
    'When it began';
COMMENT ON COLUMN nearsim.lease.beat_at IS
    'When it was last heard of';
