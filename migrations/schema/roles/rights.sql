CREATE FUNCTION nearsim.grant_rights() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT nearsim.roles_exist() THEN
        RAISE WARNING 'the roles nearsim_reader, nearsim_writer and nearsim_admin do not all exist'
            USING HINT = 'As a user that may create roles, run: nearsim access grant USER ROLE';
        RETURN;
    END IF;
    IF nearsim.may_transfer_ownership('nearsim_admin') THEN
        PERFORM nearsim.transfer_ownership('nearsim_admin');
    ELSE
        RAISE WARNING 'the schema nearsim keeps its owner; members of nearsim_admin cannot build indexes here'
            USING HINT = 'To transfer it, run as its owner and as a member of nearsim_admin: nearsim access grant';
    END IF;
    REVOKE ALL ON SCHEMA nearsim, nearsim_index FROM PUBLIC, nearsim_reader, nearsim_writer;
    REVOKE ALL ON ALL TABLES IN SCHEMA nearsim, nearsim_index FROM PUBLIC, nearsim_reader, nearsim_writer;
    REVOKE ALL ON ALL SEQUENCES IN SCHEMA nearsim, nearsim_index FROM PUBLIC, nearsim_reader, nearsim_writer;
    REVOKE ALL ON ALL ROUTINES IN SCHEMA nearsim FROM PUBLIC, nearsim_reader, nearsim_writer;
    GRANT ALL ON SCHEMA nearsim, nearsim_index TO nearsim_admin;
    GRANT ALL ON ALL TABLES IN SCHEMA nearsim, nearsim_index TO nearsim_admin;
    GRANT ALL ON ALL SEQUENCES IN SCHEMA nearsim, nearsim_index TO nearsim_admin;
    GRANT ALL ON ALL ROUTINES IN SCHEMA nearsim TO nearsim_admin;
    GRANT USAGE ON SCHEMA nearsim, nearsim_index TO nearsim_reader, nearsim_writer;
    PERFORM nearsim.grant_read_rights();
    PERFORM nearsim.grant_write_rights();
    PERFORM nearsim.withhold_all_statistics();
END
$$;
COMMENT ON FUNCTION nearsim.grant_rights() IS
    'Reset the owners and privileges of everything in the schemas nearsim and nearsim_index. Run it after a restore or a change of the schema';

-- Under isolation, readers read only tables that have a policy. The tables without a policy (work, change, lease, build_slice
-- and pending_event) are hidden, also from roles with other privileges, such as pg_read_all_data.
CREATE FUNCTION nearsim.grant_read_rights() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    isolated constant boolean := nearsim.is_isolated();
    command text;
BEGIN
    FOR command IN
        SELECT format('ALTER TABLE %s %s ROW LEVEL SECURITY', CAST(oid AS regclass),
            CASE WHEN isolated THEN 'ENABLE' ELSE 'DISABLE' END)
        FROM pg_class
        WHERE relnamespace IN (CAST('nearsim' AS regnamespace), CAST('nearsim_index' AS regnamespace))
            AND relkind IN ('r', 'p') AND relname <> 'alembic_version' AND relrowsecurity <> isolated
        UNION ALL
        SELECT format('GRANT SELECT ON %s TO nearsim_reader, nearsim_writer', CAST(oid AS regclass))
        FROM pg_class
        WHERE relnamespace IN (CAST('nearsim' AS regnamespace), CAST('nearsim_index' AS regnamespace))
            AND relkind IN ('r', 'p', 'v') AND relname <> 'lock_secret' AND (NOT isolated OR relkind = 'v' OR relname = 'alembic_version'
                OR oid IN (SELECT polrelid FROM pg_policy))
        UNION ALL
        SELECT format('GRANT EXECUTE ON FUNCTION %s TO nearsim_reader, nearsim_writer', CAST(oid AS regprocedure))
        FROM pg_proc
        WHERE pronamespace IN (CAST('nearsim' AS regnamespace), CAST('nearsim_index' AS regnamespace))
            AND provolatile <> 'v'
            AND prorettype NOT IN (CAST('trigger' AS regtype), CAST('event_trigger' AS regtype))
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.grant_read_rights() IS
    'Internal (used by grant_rights): grants readers and writers the right to read tables and views, and to call functions without side effects';

-- Under isolation, writers may not create collections. They may not choose ids or revisions either, because trying them out
-- would reveal the activity of other tenants.
CREATE FUNCTION nearsim.grant_write_rights() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    columns text;
    command text;
BEGIN
    GRANT USAGE ON SEQUENCE nearsim.document_revision TO nearsim_writer;
    GRANT DELETE ON nearsim.document TO nearsim_writer;
    IF nearsim.is_isolated() THEN
        SELECT string_agg(quote_ident(attname), ', ') INTO columns FROM pg_attribute
        WHERE attrelid = CAST('nearsim.document' AS regclass) AND attnum > 0 AND NOT attisdropped
            AND attname NOT IN ('doc_id', 'revision', 'body_digest', 'body_length');
        EXECUTE format('GRANT INSERT (%s), UPDATE (%s) ON nearsim.document TO nearsim_writer', columns, columns);
    ELSE
        GRANT INSERT, UPDATE ON nearsim.document TO nearsim_writer;
        GRANT INSERT (name) ON nearsim.collection TO nearsim_writer;
    END IF;
    GRANT INSERT (collection_id, left_id, right_id, verdict, by, why), UPDATE (undone_by, undone_why, undone_at)
        ON nearsim.verdict TO nearsim_writer;
    GRANT INSERT (collection_id, doc_id, by, why), UPDATE (undone_by, undone_why, undone_at)
        ON nearsim.survivor_pin TO nearsim_writer;
    GRANT INSERT (collection_id, by, queue, left_id, right_id, leased_until, probability),
        UPDATE (leased_until, answer, why, decided_at, decision_id, verdict_id, replaced_id, pin_id, undone_at)
        ON nearsim.review TO nearsim_writer;
    GRANT INSERT (collection_id, generation_id, external_id, bucket_hashes) ON nearsim_index.checked_insertion TO nearsim_writer;
    GRANT INSERT (collection_id, profile, title, body, min_similarity, deadline, max_matches, external_id, purpose)
        ON nearsim.probe TO nearsim_reader, nearsim_writer;
    GRANT UPDATE (bodies) ON nearsim_index.attached_texts TO nearsim_reader, nearsim_writer;
    FOR command IN
        SELECT format('GRANT EXECUTE ON ROUTINE %s TO %s', CAST(pg_proc.oid AS regprocedure), role)
        FROM (VALUES
            ('nearsim_reader, nearsim_writer',
                ARRAY['ask', 'await_answer', 'similar_to_text', 'answer_to', 'commit_request', 'ask_apart', 'find_request',
                    'check_text', 'attached_bodies', 'source_texts']),
            ('nearsim_writer', ARRAY['check_insert', 'lock_asked', 'refuse_outdated', 'pin_pair', 'pin_pair_by_doc_id',
                'veto_pair', 'veto_pair_by_doc_id', 'pin_survivor',
                'pin_survivor_by_doc_id', 'unpin_survivor', 'unpin_survivor_by_doc_id', 'undo_verdict', 'undo_verdict_by_doc_id',
                'undo_current_verdicts', 'store_verdicts', 'require_reason', 'named_verdict', 'named_choice'])
        ) AS granted (role, names)
        JOIN pg_proc ON proname = ANY (CAST(names AS name[]))
        WHERE pronamespace = CAST('nearsim' AS regnamespace)
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;
COMMENT ON FUNCTION nearsim.grant_write_rights() IS
    'Internal (used by grant_rights): grants writers the right to write, readers the right to insert lookup requests, and both the right to call the functions for this';
