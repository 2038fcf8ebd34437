CREATE FUNCTION nearsim.indexed_document(
    generation_id integer, doc_id bigint, OUT external_id text, OUT head_id bigint, OUT feature_count integer,
    OUT numbers_digest bigint, OUT cluster_id bigint, OUT is_behind boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan
BEGIN ATOMIC
    SELECT document.external_id, signature.head_id, signature.feature_count, signature.numbers_digest, member.cluster_id,
        coalesce(signature.revision < document.revision, false)
    FROM nearsim.document
    LEFT JOIN nearsim.signature
        ON signature.generation_id = indexed_document.generation_id AND signature.doc_id = indexed_document.doc_id
    LEFT JOIN nearsim.cluster_member AS member
        ON member.generation_id = indexed_document.generation_id AND member.doc_id = indexed_document.doc_id
    WHERE document.doc_id = indexed_document.doc_id;
END;
COMMENT ON FUNCTION nearsim.indexed_document(integer, bigint) IS 'Internal (used by why): a document as indexed in a generation';
