-- What pin_pair, veto_pair and undo_verdict share. All run as their caller, who needs rights on document and verdict.
CREATE FUNCTION nearsim.undo_standing(a bigint, b bigint, why text, by text) RETURNS nearsim.verdict
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    undone nearsim.verdict;
    unknown bigint;
    collections integer;
BEGIN
    IF a = b THEN
        RAISE EXCEPTION 'a verdict is about two documents, not about % and itself', a
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF btrim(coalesce(why, '')) = '' OR btrim(coalesce(by, '')) = '' THEN
        RAISE EXCEPTION 'a verdict needs a reason (why) and somebody who decides (by)'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The lock makes a purge of one of them wait, or this for the purge.
    PERFORM FROM nearsim.document WHERE doc_id IN (a, b) ORDER BY doc_id FOR KEY SHARE;
    SELECT min(asked.doc_id) FILTER (WHERE document.doc_id IS NULL), count(DISTINCT document.collection_id)
    INTO unknown, collections
    FROM unnest(ARRAY[a, b]) AS asked (doc_id) LEFT JOIN nearsim.document USING (doc_id);
    IF unknown IS NOT NULL OR a IS NULL OR b IS NULL THEN
        RAISE EXCEPTION 'there is no document %', coalesce(CAST(unknown AS text), 'null')
            USING ERRCODE = 'no_data_found';
    END IF;
    IF collections > 1 THEN
        RAISE EXCEPTION 'documents % and % are of different collections, which are never compared', a, b
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- JUDGE in nearsim_db.store.locks: who decides about one pair does it after the other.
    PERFORM pg_advisory_xact_lock(28285, hashtext(least(a, b) || ' ' || greatest(a, b)));
    UPDATE nearsim.verdict AS standing
    SET undone_by = undo_standing.by, undone_why = undo_standing.why, undone_at = now()
    WHERE left_id = least(a, b) AND right_id = greatest(a, b) AND undone_at IS NULL
    RETURNING standing.* INTO undone;
    RETURN undone;
END
$$;
COMMENT ON FUNCTION nearsim.undo_standing(bigint, bigint, text, text) IS
    'Part of pin_pair, veto_pair and undo_verdict: undoes what stands on a pair, null if nothing does';

CREATE FUNCTION nearsim.judge(verdict text, a bigint, b bigint, why text, by text) RETURNS nearsim.verdict
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    made nearsim.verdict;
BEGIN
    -- Somebody may insert a verdict by hand at the same moment; then theirs is replaced.
    FOR attempt IN 1 .. 3 LOOP
        PERFORM nearsim.undo_standing(a, b, why, by);
        INSERT INTO nearsim.verdict AS standing (collection_id, left_id, right_id, verdict, by, why)
        SELECT document.collection_id, least(a, b), greatest(a, b), judge.verdict, judge.by, judge.why
        FROM nearsim.document WHERE doc_id = a
        ON CONFLICT (left_id, right_id) WHERE undone_at IS NULL DO NOTHING
        RETURNING standing.* INTO made;
        IF FOUND THEN
            RETURN made;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'others judge these two documents at the same time; try again'
        USING ERRCODE = 'serialization_failure';
END
$$;
COMMENT ON FUNCTION nearsim.judge(text, bigint, bigint, text, text) IS
    'Part of pin_pair and veto_pair: a verdict on a pair in place of the one that stands';

CREATE FUNCTION nearsim.documents_named(a text, b text, collection text, OUT a_id bigint, OUT b_id bigint)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    names text[];
    unknown text;
BEGIN
    IF a = b THEN
        RAISE EXCEPTION 'a verdict is about two documents, not about % and itself', quote_literal(a)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT min(one.doc_id), min(other.doc_id), array_agg(found.name ORDER BY found.name) INTO a_id, b_id, names
    FROM nearsim.collection AS found
    JOIN nearsim.document AS one ON one.collection_id = found.collection_id AND one.external_id = a
    JOIN nearsim.document AS other ON other.collection_id = found.collection_id AND other.external_id = b
    WHERE found.name = documents_named.collection OR documents_named.collection IS NULL AND NOT found.temporary;
    IF cardinality(names) > 1 THEN
        RAISE EXCEPTION 'documents ''%'' and ''%'' are in several collections; name one of: %',
            a, b, array_to_string(names, ', ') USING ERRCODE = 'invalid_parameter_value';
    ELSIF names IS NULL THEN
        SELECT asked.external_id INTO unknown
        FROM unnest(ARRAY[a, b]) WITH ORDINALITY AS asked (external_id, position)
        WHERE NOT EXISTS (
            SELECT FROM nearsim.document JOIN nearsim.collection AS found USING (collection_id)
            WHERE document.external_id = asked.external_id
                AND (found.name = documents_named.collection OR documents_named.collection IS NULL AND NOT found.temporary))
        ORDER BY position LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'there is no document ''%''%', unknown, coalesce(' in collection ''' || collection || '''', '')
                USING ERRCODE = 'no_data_found';
        END IF;
        RAISE EXCEPTION 'documents ''%'' and ''%'' are of different collections, which are never compared', a, b
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.documents_named(text, text, text) IS
    'Part of pin_pair, veto_pair and undo_verdict: two documents of one collection by their external_id';
