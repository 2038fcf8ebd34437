-- What every session of ours relies on.
SET client_encoding = 'UTF8';
-- All our names are qualified: nothing may resolve through the path.
SET search_path = pg_catalog, pg_temp;
-- It only delays queries as short as ours.
SET jit = off;
-- What is known of a queue's size is always old; a bitmap over one taken for short reads all of it for its first row.
SET enable_bitmapscan = off;
-- Every statement of a round must see what is committed by then, whatever a role's default is.
SET default_transaction_isolation = 'read committed';
-- Sessions that hold a lock are idle for long, and streams are read as slowly as their readers like.
SET idle_session_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
-- The server should notice within a minute that a worker's machine is gone.
SET tcp_keepalives_idle = 30;
SET tcp_keepalives_interval = 10;
SET tcp_keepalives_count = 3
