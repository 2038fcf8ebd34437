CREATE TABLE nearsim_index.lease (
    lease_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    worker text NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT now(),
    beat_at timestamptz NOT NULL DEFAULT now(),
    closed boolean NOT NULL DEFAULT false
);

COMMENT ON TABLE nearsim_index.lease IS
    'Leases of running processes. Each process holds an advisory lock while it runs; when it ends, its work is released';
COMMENT ON COLUMN nearsim_index.lease.worker IS 'The process that holds it, as host:pid';
COMMENT ON COLUMN nearsim_index.lease.taken_at IS 'When it was acquired';
COMMENT ON COLUMN nearsim_index.lease.beat_at IS 'Last heartbeat';
COMMENT ON COLUMN nearsim_index.lease.closed IS
    'Whether its process has ended the lease but could not release the work yet; this does not count as a failed attempt';
