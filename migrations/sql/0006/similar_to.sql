-- A type of its own, because a column of a function may not have the name of a parameter.
CREATE TYPE nearsim.similar_document AS (
    doc_id bigint, external_id text, title text, similarity double precision, estimate real, shared_bands smallint,
    intersection_size integer, union_size integer, numbers_differ boolean, verdict text, verified boolean);
COMMENT ON TYPE nearsim.similar_document IS 'What similar_to answers with';
COMMENT ON COLUMN nearsim.similar_document.doc_id IS 'Number of the similar document';
COMMENT ON COLUMN nearsim.similar_document.external_id IS 'Its external_id';
COMMENT ON COLUMN nearsim.similar_document.title IS 'Its title';
COMMENT ON COLUMN nearsim.similar_document.similarity IS 'Verified similarity; the estimate of the sketches where verified is false';
COMMENT ON COLUMN nearsim.similar_document.estimate IS 'Similarity as estimated from the two sketches';
COMMENT ON COLUMN nearsim.similar_document.shared_bands IS 'How many bands of the two sketches are equal';
COMMENT ON COLUMN nearsim.similar_document.intersection_size IS 'How many features both have; NULL where verified is false';
COMMENT ON COLUMN nearsim.similar_document.union_size IS 'How many features either has; NULL where verified is false';
COMMENT ON COLUMN nearsim.similar_document.numbers_differ IS 'Whether the runs of digits in their texts differ: alike, but with other figures or dates';
COMMENT ON COLUMN nearsim.similar_document.verdict IS 'pinned or vetoed by a person; NULL for most';
COMMENT ON COLUMN nearsim.similar_document.verified IS 'Whether it is a pair of the index; false for what only the buckets gave';

-- Relies on document_pkey and verdict_one_standing.
CREATE FUNCTION nearsim.similar_to(
    doc_id bigint, min_similarity double precision DEFAULT NULL, min_shared_bands integer DEFAULT NULL,
    profile text DEFAULT NULL)
RETURNS SETOF nearsim.similar_document
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    home constant integer := nearsim.collection_of(doc_id);
    live record;
    alike double precision;
    shared integer;
BEGIN
    SELECT * INTO STRICT live FROM nearsim.serving(home, profile);
    alike := coalesce(min_similarity, live.threshold);
    shared := coalesce(min_shared_bands, live.min_shared_bands);
    IF NOT alike BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'a similarity of % is outside 0..1', alike USING ERRCODE = 'invalid_parameter_value';
    ELSIF shared < 1 THEN
        RAISE EXCEPTION 'a minimum of % shared bands is impossible; choose 1 or more', shared
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN QUERY
        SELECT named.doc_id, named.external_id, named.title, found.similarity, found.estimate, found.shared_bands,
            found.intersection_size, found.union_size, found.numbers_differ, said.verdict, found.verified
        FROM (
            SELECT kept.*, true AS verified
            FROM nearsim.pairs_of(live.generation_id, similar_to.doc_id, alike, shared) AS kept
            UNION ALL
            SELECT met.other_id, met.estimate, CAST(met.estimate AS real), met.shared_bands, NULL, NULL,
                met.numbers_differ, false
            FROM nearsim.met_by(live.generation_id, similar_to.doc_id, alike, shared) AS met
            WHERE alike < live.threshold OR shared < live.min_shared_bands
        ) AS found
        CROSS JOIN LATERAL (
            SELECT document.doc_id, document.external_id, document.title FROM nearsim.document
            WHERE document.doc_id = found.other_id AND document.collection_id = home LIMIT 1
        ) AS named
        LEFT JOIN LATERAL (
            SELECT verdict.verdict FROM nearsim.verdict
            WHERE verdict.left_id = least(similar_to.doc_id, found.other_id)
                AND verdict.right_id = greatest(similar_to.doc_id, found.other_id) AND verdict.undone_at IS NULL LIMIT 1
        ) AS said ON true
        ORDER BY found.similarity DESC, found.other_id;
END
$$;
COMMENT ON FUNCTION nearsim.similar_to(bigint, double precision, integer, text) IS
    'The documents that are similar to one, the most similar first. Unless they are given, min_similarity and min_shared_bands are those of the recipe, and all are verified pairs. Asked for less than the recipe has, it adds what else is in the document''s buckets (the first bucket_limit of each): those have verified = false, and their similarity is the estimate of the sketches. A document that is not indexed yet has none; nearsim.documents tells its state';

CREATE FUNCTION nearsim.similar_to(
    external_id text, min_similarity double precision DEFAULT NULL, min_shared_bands integer DEFAULT NULL,
    profile text DEFAULT NULL, collection text DEFAULT NULL)
RETURNS SETOF nearsim.similar_document
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.similar_to(
        nearsim.document_named(external_id, collection), min_similarity, min_shared_bands, profile);
END
$$;
COMMENT ON FUNCTION nearsim.similar_to(text, double precision, integer, text, text) IS
    'The documents that are similar to one, which is told by its external_id; the collection must be named where several have such a document';
