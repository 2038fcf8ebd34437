-- A request over a connection of its own, so that workers see it while the caller's transaction is open. The session keeps
-- the connection; one that fails is closed, and the next request opens another.
CREATE FUNCTION nearsim.ask_apart(
    body text, title text, collection text, profile text, min_similarity double precision, deadline interval,
    max_matches integer, external_id text, purpose text
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home constant text := (
        SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
        WHERE extname = 'dblink');
    request constant text := format('SELECT nearsim.ask(%L, %L, %L, %L, %L, %L, %L, %L, %L)', body, title, collection,
        profile, min_similarity, deadline, max_matches, external_id, purpose);
    is_open boolean;
    asked bigint;
BEGIN
    IF home IS NULL OR NOT EXISTS (SELECT FROM pg_foreign_server WHERE srvname = 'nearsim') THEN
        RAISE EXCEPTION 'a text can be looked up inside a transaction only over a second connection, which is not set up'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = concat('Create the extension dblink and the server nearsim: docs/check-before-adding.md.',
                    CASE WHEN purpose IS NULL THEN ' Outside a transaction CALL nearsim.similar_to_text needs neither.' END);
    END IF;
    EXECUTE format('SELECT ''nearsim'' = ANY (%s.dblink_get_connections())', home) INTO is_open;
    IF is_open IS NOT TRUE THEN
        EXECUTE format('SELECT %s.dblink_connect(''nearsim'', ''nearsim'')', home);
    END IF;
    BEGIN
        EXECUTE format('SELECT asked.probe_id FROM %s.dblink(''nearsim'', $1) AS asked (probe_id bigint)', home)
            INTO asked USING request;
    EXCEPTION WHEN OTHERS THEN
        EXECUTE format('SELECT %s.dblink_disconnect(''nearsim'')', home);
        RAISE;
    END;
    RETURN asked;
END
$$;
COMMENT ON FUNCTION nearsim.ask_apart(text, text, text, text, double precision, interval, integer, text, text) IS
    'Internal (used by check_text and check_insert): ask() in a transaction of its own, over the foreign server nearsim of dblink';

CREATE FUNCTION nearsim.check_text(
    body text, title text DEFAULT NULL, collection text DEFAULT NULL, profile text DEFAULT NULL,
    min_similarity double precision DEFAULT NULL, deadline interval DEFAULT '5 seconds',
    max_matches integer DEFAULT NULL, external_id text DEFAULT NULL
) RETURNS SETOF nearsim.text_match
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.similar_to_text(nearsim.ask_apart(
        body, title, collection, profile, min_similarity, deadline, max_matches, external_id, NULL));
END
$$;
COMMENT ON FUNCTION nearsim.check_text(text, text, text, text, double precision, interval, integer, text) IS
    'The documents that a text would be paired with, as CALL similar_to_text, also inside a transaction; a stored document with external_id is left out. Needs a worker and the foreign server nearsim of dblink';

-- Near-duplicates share a bucket, hence a lock: the second of two transactions waits for the first, whose document a worker
-- has signed before it answers. After a promotion the locks are others.
CREATE FUNCTION nearsim.check_insert(
    body text, title text DEFAULT NULL, collection text DEFAULT NULL, profile text DEFAULT NULL,
    min_similarity double precision DEFAULT NULL, deadline interval DEFAULT '5 seconds',
    max_matches integer DEFAULT NULL, external_id text DEFAULT NULL
) RETURNS SETOF nearsim.text_match
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held bigint[];
    wanted bigint[];
    asked bigint;
BEGIN
    LOOP
        asked := nearsim.ask_apart(body, title, collection, profile, min_similarity, deadline, max_matches, external_id,
            CASE WHEN held IS NULL THEN 'lock' ELSE 'insert' END);
        RETURN QUERY SELECT * FROM nearsim.similar_to_text(asked);
        EXIT WHEN FOUND;
        SELECT probe.lock_keys INTO wanted FROM nearsim.probe WHERE probe.probe_id = asked;
        EXIT WHEN held @> wanted;
        PERFORM pg_advisory_xact_lock(key) FROM (SELECT unnest(wanted) AS key ORDER BY key OFFSET 0) AS ordered;
        held := held || wanted;
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.check_insert(text, text, text, text, double precision, interval, integer, text) IS
    'check_text before inserting a document with this text: if it returns no rows, no other transaction that calls it, and no Index.add with on_duplicate, inserts a near-duplicate before this transaction ends';
