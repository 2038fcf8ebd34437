-- What every session of ours relies on. All our names are qualified, so nothing may resolve through the path; JIT only
-- delays our queries; every statement of a round must see what is committed by then, whatever a role's default is; and the
-- server should notice within a minute that a worker's machine is gone.
SET client_encoding = 'UTF8';
SET search_path = pg_catalog, pg_temp;
SET jit = off;
SET default_transaction_isolation = 'read committed';
SET tcp_keepalives_idle = 30;
SET tcp_keepalives_interval = 10;
SET tcp_keepalives_count = 3
