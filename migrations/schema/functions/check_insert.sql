-- Leaves out requests of this transaction, because no worker sees them before the commit. Relies on probe_age.
CREATE FUNCTION nearsim.find_request(
    body text, title text, collection text, profile text, min_similarity double precision, max_matches integer,
    external_id text, purpose text
) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    home constant integer := nearsim.collection_named(collection);
BEGIN
    RETURN (
        SELECT probe_id FROM nearsim.probe
        WHERE probe.deadline > clock_timestamp() AND probe.collection_id = home
            AND probe.body IS NOT DISTINCT FROM find_request.body
            AND probe.title IS NOT DISTINCT FROM find_request.title
            AND probe.profile IS NOT DISTINCT FROM find_request.profile
            AND probe.min_similarity = coalesce(find_request.min_similarity, 0)
            AND probe.max_matches IS NOT DISTINCT FROM find_request.max_matches
            AND probe.external_id IS NOT DISTINCT FROM find_request.external_id
            AND (probe.purpose = find_request.purpose OR find_request.purpose IS NULL)
            AND probe.xmin IS DISTINCT FROM CAST(pg_current_xact_id_if_assigned() AS xid)
        ORDER BY probe_id DESC LIMIT 1);
END
$$;
COMMENT ON FUNCTION nearsim.find_request(text, text, text, text, double precision, integer, text, text) IS
    'Internal (used by check_text and check_insert): the newest committed request with these arguments whose deadline has not passed; NULL if there is none';

-- Asks over a second connection, so that workers see the request while the caller's transaction is open. The session keeps
-- this connection. A failure closes it, and the next request opens another one.
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
        RAISE EXCEPTION 'this text was not asked for before the transaction, and there is no second connection to ask over'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = format('Before the transaction SELECT nearsim.ask() with the same arguments%s, or create the '
                    'extension dblink and the server nearsim: docs/how-to/check-from-sql.md.',
                    CASE WHEN purpose IS NOT NULL THEN ' and purpose => ''insert''' END);
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
    'Internal (used by check_text and check_insert): calls ask() in a separate transaction, over the dblink server named nearsim';

CREATE FUNCTION nearsim.check_text(
    body text, title text DEFAULT NULL, collection text DEFAULT NULL, profile text DEFAULT NULL,
    min_similarity double precision DEFAULT NULL, deadline interval DEFAULT '5 seconds',
    max_matches integer DEFAULT NULL, external_id text DEFAULT NULL
) RETURNS SETOF nearsim.text_match
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.similar_to_text(coalesce(
        nearsim.find_request(body, title, collection, profile, min_similarity, max_matches, external_id, NULL),
        nearsim.ask_apart(body, title, collection, profile, min_similarity, deadline, max_matches, external_id, NULL)));
END
$$;
COMMENT ON FUNCTION nearsim.check_text(text, text, text, text, double precision, interval, integer, text) IS
    'The documents that a text would be paired with, as CALL similar_to_text returns them, but also inside a transaction. The stored document that has this external_id is left out. This needs a worker, and either a call of ask() with the same arguments before the transaction or the dblink server named nearsim';

-- The trigger on checked_insertion takes the locks, provided that the caller may write to the collection.
CREATE FUNCTION nearsim.lock_asked(probe_id bigint) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    INSERT INTO nearsim_index.checked_insertion (collection_id, generation_id, external_id, bucket_hashes)
    SELECT probe.collection_id, probe.generation_id, probe.external_id, probe.bucket_hashes
    FROM nearsim.probe WHERE probe.probe_id = lock_asked.probe_id;
END;
COMMENT ON FUNCTION nearsim.lock_asked(bigint) IS
    'Internal (used by check_insert): records that the text of an answered request is being inserted, and locks its buckets until the transaction ends';

-- Called under the locks of the answer's buckets; while they are held, the live generation stays live. The deadline is
-- compared after the insertions are read, because workers delete insertions that no answer within its deadline needs.
CREATE FUNCTION nearsim.refuse_outdated(probe_id bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    answer nearsim.probe;
    is_overtaken boolean;
BEGIN
    SELECT * INTO answer FROM nearsim.probe WHERE probe.probe_id = refuse_outdated.probe_id;
    SELECT bool_or(pg_visible_in_snapshot(CAST(transaction_id AS xid8), CAST(answer.snapshot AS pg_snapshot)) IS NOT TRUE)
    INTO is_overtaken
    FROM (
        SELECT transaction_id FROM nearsim_index.checked_insertion
        WHERE generation_id = answer.generation_id AND bucket_hashes && answer.bucket_hashes
        UNION ALL
        SELECT transaction_id FROM nearsim_index.checked_insertion
        WHERE collection_id = answer.collection_id
            AND (generation_id IS DISTINCT FROM answer.generation_id OR generation_id IS NULL)
    ) AS inserted
    WHERE transaction_id <> CAST(pg_current_xact_id() AS text);
    is_overtaken := is_overtaken OR EXISTS (
        SELECT FROM nearsim.generation WHERE generation.generation_id = answer.generation_id AND state <> 'live');

    IF is_overtaken OR (answer.deadline > clock_timestamp()) IS NOT TRUE THEN
        RAISE EXCEPTION 'a text that may be a near-duplicate was inserted after the answer to probe %', refuse_outdated.probe_id
            USING ERRCODE = 'serialization_failure',
                HINT = 'Roll back, ask again with nearsim.ask(), and try the transaction again.';
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.refuse_outdated(bigint) IS
    'Internal (used by check_insert): raises serialization_failure if a text that shares a bucket was inserted after a request was answered, or if the deadline of the request has passed';

-- Near-duplicates share a bucket and therefore a lock. The second of two transactions waits for the first, and then sees its
-- row in checked_insertion.
CREATE FUNCTION nearsim.check_insert(
    body text, title text DEFAULT NULL, collection text DEFAULT NULL, profile text DEFAULT NULL,
    min_similarity double precision DEFAULT NULL, deadline interval DEFAULT '5 seconds',
    max_matches integer DEFAULT NULL, external_id text DEFAULT NULL
) RETURNS SETOF nearsim.text_match
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    asked bigint := nearsim.find_request(
        body, title, collection, profile, min_similarity, max_matches, external_id, 'insert');
    held text;
    wanted text;
BEGIN
    IF asked IS NOT NULL THEN
        RETURN QUERY SELECT * FROM nearsim.similar_to_text(asked);
        IF NOT FOUND THEN
            PERFORM nearsim.lock_asked(asked);
            PERFORM nearsim.refuse_outdated(asked);
        END IF;
        RETURN;
    END IF;

    -- Ask over the second connection until this transaction holds the locks that the answer needs. A promotion in between
    -- changes which locks these are.
    LOOP
        asked := nearsim.ask_apart(body, title, collection, profile, min_similarity, deadline, max_matches, external_id,
            CASE WHEN held IS NULL THEN 'lock' ELSE 'locked' END);
        RETURN QUERY SELECT * FROM nearsim.similar_to_text(asked);
        EXIT WHEN FOUND;
        SELECT concat_ws(' ', generation_id, bucket_hashes) INTO wanted FROM nearsim.probe WHERE probe_id = asked;
        EXIT WHEN held = wanted;
        PERFORM nearsim.lock_asked(asked);
        held := wanted;
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.check_insert(text, text, text, text, double precision, interval, integer, text) IS
    'Like check_text, for a text that this transaction is about to insert. If it returns no rows, no other transaction that calls check_insert, and no Index.add with on_duplicate, can insert a near-duplicate before this transaction ends. If you call ask() before the transaction, pass purpose => ''insert''';
