-- Before this is called for a generation, nothing reads the copies, and no pairs are stored.
CREATE FUNCTION nearsim.copy_signatures(generation_id integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('INSERT INTO nearsim_index.signed_document '
        '(generation_id, feature_count, doc_id, head_id, revision, numbers_digest) '
        'SELECT generation_id, feature_count, doc_id, head_id, revision, numbers_digest FROM nearsim_index.%I '
        'ORDER BY doc_id', nearsim.leaf_of('signature', generation_id));
END
$$;
COMMENT ON FUNCTION nearsim.copy_signatures(integer) IS
    'Internal (used by every build of a large collection): copies the signatures of the generation to signed_document';

-- Copies the signatures of generations whose tables have the triggers. A build that has not created its triggers yet copies
-- its signatures itself later. This is the only place that creates the indexes, also in a new database.
CREATE FUNCTION nearsim.restore_copies() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    TRUNCATE nearsim_index.signed_document;
    ALTER TABLE nearsim_index.signed_document DROP CONSTRAINT IF EXISTS signed_document_pkey,
        ADD CONSTRAINT signed_document_pkey PRIMARY KEY (generation_id, doc_id);
    DROP INDEX IF EXISTS nearsim_index.signed_document_head;
    CREATE INDEX signed_document_head ON nearsim_index.signed_document (generation_id, head_id, doc_id);
    PERFORM nearsim.copy_signatures(generation.generation_id) FROM nearsim.generation
    WHERE EXISTS (
        SELECT FROM pg_trigger WHERE tgname = 'follow_insert'
            AND tgrelid = to_regclass('nearsim_index.signature_' || generation.generation_id));
END
$$;
COMMENT ON FUNCTION nearsim.restore_copies() IS
    'Internal (used by verify-index): replaces the rows of signed_document by copies of the signatures of all large collections, and creates its indexes';
SELECT nearsim.restore_copies();
