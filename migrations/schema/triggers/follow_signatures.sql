-- Deletes the pairs of deleted signatures. This replaces a foreign key, which cannot refer to partitions. Sessions that write
-- pairs lock the signatures of both documents before. Pairs are deleted by arrays of ids, because a join would scan the
-- deleted rows once for each pair if the statistics know no rows. Relies on the keys and on the index on right_id.
CREATE FUNCTION nearsim.follow_signatures() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
    own record;
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO nearsim_index.signed_document (generation_id, feature_count, doc_id, head_id, revision, numbers_digest)
        SELECT generation_id, feature_count, doc_id, head_id, revision, numbers_digest FROM after_rows
        WHERE generation_id >= 100000000;
    ELSIF TG_OP = 'UPDATE' THEN
        INSERT INTO nearsim_index.signed_document (generation_id, feature_count, doc_id, head_id, revision, numbers_digest)
        SELECT generation_id, feature_count, doc_id, head_id, revision, numbers_digest FROM after_rows
        WHERE generation_id >= 100000000
        ON CONFLICT (generation_id, doc_id) DO UPDATE SET feature_count = excluded.feature_count,
            head_id = excluded.head_id, revision = excluded.revision, numbers_digest = excluded.numbers_digest;
    ELSE
        FOR own IN SELECT generation_id, array_agg(doc_id) AS doc_ids FROM before_rows GROUP BY generation_id LOOP
            DELETE FROM nearsim.similar_pair AS pair
            WHERE pair.generation_id = own.generation_id AND pair.left_id = ANY(own.doc_ids);
            DELETE FROM nearsim.similar_pair AS pair
            WHERE pair.generation_id = own.generation_id AND pair.right_id = ANY(own.doc_ids);
            DELETE FROM nearsim_index.signed_document AS signed
            WHERE signed.generation_id = own.generation_id AND signed.doc_id = ANY(own.doc_ids);
        END LOOP;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.follow_signatures() IS
    'Trigger: keeps signed_document equal to the signatures of large collections, and deletes the pairs of deleted signatures';
