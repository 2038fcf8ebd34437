-- Pairs of a deleted signature go with it: their tables are not those of a foreign key to signatures, which are partitions.
-- Writers of pairs lock the signatures of both documents before. Relies on the keys and on the index on right_id.
CREATE FUNCTION nearsim.follow_signatures() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO nearsim_index.signed_document (generation_id, feature_count, doc_id, head_id, revision, numbers_digest)
        SELECT generation_id, feature_count, doc_id, head_id, revision, numbers_digest FROM after_rows
        WHERE generation_id >= 100000000;
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE nearsim_index.signed_document AS signed SET feature_count = now_is.feature_count, head_id = now_is.head_id,
            revision = now_is.revision, numbers_digest = now_is.numbers_digest
        FROM after_rows AS now_is
        WHERE signed.generation_id = now_is.generation_id AND signed.doc_id = now_is.doc_id;
    ELSE
        DELETE FROM nearsim.similar_pair AS pair USING before_rows AS gone
        WHERE pair.generation_id = gone.generation_id AND pair.left_id = gone.doc_id;
        DELETE FROM nearsim.similar_pair AS pair USING before_rows AS gone
        WHERE pair.generation_id = gone.generation_id AND pair.right_id = gone.doc_id;
        DELETE FROM nearsim_index.signed_document AS signed USING before_rows AS gone
        WHERE signed.generation_id = gone.generation_id AND signed.doc_id = gone.doc_id;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.follow_signatures() IS
    'Trigger: keeps signed_document equal to the signatures of large collections, and deletes the pairs of deleted signatures';
