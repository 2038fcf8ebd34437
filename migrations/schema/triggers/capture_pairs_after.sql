-- Checks by index that all pairs of a statement have signatures. This replaces foreign keys, which cannot refer to partitions.
-- No pair escapes the check: a session locks both signatures before it writes a pair, and follow_signatures deletes the pairs
-- of deleted signatures.
CREATE FUNCTION nearsim.capture_pairs_after() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (
        SELECT FROM (
            SELECT DISTINCT pair.generation_id, end_of.doc_id
            FROM after_rows AS pair CROSS JOIN LATERAL (VALUES (pair.left_id), (pair.right_id)) AS end_of (doc_id)
        ) AS own
        WHERE NOT CASE WHEN own.generation_id < 100000000
            THEN EXISTS (SELECT FROM nearsim_index.signature_shared AS signed
                WHERE signed.generation_id = own.generation_id AND signed.doc_id = own.doc_id OFFSET 0)
            ELSE EXISTS (SELECT FROM nearsim_index.signed_document AS signed
                WHERE signed.generation_id = own.generation_id AND signed.doc_id = own.doc_id OFFSET 0) END)
    THEN
        RAISE EXCEPTION 'pairs of documents without signatures violate the constraint "similar_pair_signed"'
            USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'similar_pair_signed';
    END IF;
    INSERT INTO nearsim_index.pending_event (generation_id, kind, left_ids, right_ids, similarities)
    SELECT generation_id, 'pairs_after', array_agg(left_id), array_agg(right_id), array_agg(similarity)
    FROM after_rows WHERE NOT in_review GROUP BY generation_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.capture_pairs_after() IS
    'Trigger: captures pairs that a statement inserted or updated, in their new state; raises an error for pairs of documents without signatures';
