-- Similarities are compared with the recipe's least similarity, because the threshold may be a distance.
CREATE FUNCTION nearsim.dedupe(
    doc_ids bigint[], min_similarity double precision DEFAULT NULL, profile text DEFAULT NULL)
RETURNS TABLE (place integer, doc_id bigint, keep boolean, duplicate_of bigint, similarity double precision,
    indexed boolean, verified boolean)
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    given record;
    live record;
    heads bigint[];
    signed boolean[];
    link record;
    kept_as integer[];
    alike double precision[];
    are_verified boolean[];
    least_stored double precision;
BEGIN
    SELECT * INTO given FROM nearsim.visible_among(doc_ids);
    IF given.home IS NOT NULL THEN
        SELECT * INTO live FROM nearsim.live_generation(given.home, profile, given.known[1]);
        IF FOUND THEN
            -- Pairs by their shared bands are stored whatever their similarity.
            least_stored := CASE WHEN live.recipe #>> '{match,certain_shared_bands}' <> '0' THEN 0
                ELSE nearsim.least_similarity(live.recipe) END;
            IF NOT min_similarity BETWEEN least_stored AND 1 THEN
                RAISE EXCEPTION 'a similarity of % is outside %..1: pairs below the threshold of the recipe are not stored',
                    min_similarity, least_stored USING ERRCODE = 'invalid_parameter_value';
            END IF;
            SELECT array_agg(own.head_id ORDER BY known.place), array_agg(own.doc_id IS NOT NULL ORDER BY known.place)
            INTO heads, signed
            FROM unnest(given.known) WITH ORDINALITY AS known (doc_id, place)
            LEFT JOIN nearsim.heads_of(live.generation_id, given.known) AS own ON own.doc_id = known.doc_id;
            FOR link IN
                SELECT * FROM nearsim.links_among(
                    live.generation_id, given.known, heads, coalesce(min_similarity, 0)) AS found
                ORDER BY found.later, found.similarity DESC NULLS LAST, found.earlier
            LOOP
                IF kept_as[link.later] IS NULL AND kept_as[link.earlier] IS NULL THEN
                    kept_as[link.later] := link.earlier;
                    alike[link.later] := link.similarity;
                    are_verified[link.later] := CASE WHEN link.similarity IS NOT NULL
                        THEN nearsim.is_exact(live.recipe) OR heads[link.later] = heads[link.earlier] END;
                END IF;
            END LOOP;
        END IF;
    END IF;
    RETURN QUERY
        SELECT CAST(asked.place AS integer), asked.doc_id, asked.decided_by IS NULL AND asked.occurrence = 1,
            CASE WHEN asked.decided_by IS NOT NULL THEN given.known[asked.decided_by]
                WHEN asked.occurrence > 1 THEN asked.doc_id END,
            CASE WHEN asked.decided_by IS NOT NULL THEN alike[asked.known_place]
                WHEN asked.occurrence > 1 THEN 1 END,
            coalesce(signed[asked.known_place], false),
            CASE WHEN asked.decided_by IS NOT NULL THEN are_verified[asked.known_place]
                WHEN asked.occurrence > 1 THEN true END
        FROM (
            SELECT whole.place, whole.doc_id, known.place AS known_place, kept_as[known.place] AS decided_by,
                CASE WHEN whole.doc_id IS NULL THEN 1
                    ELSE row_number() OVER (PARTITION BY whole.doc_id ORDER BY whole.place) END AS occurrence
            FROM unnest(dedupe.doc_ids) WITH ORDINALITY AS whole (doc_id, place)
            LEFT JOIN unnest(given.known) WITH ORDINALITY AS known (doc_id, place) ON known.doc_id = whole.doc_id
        ) AS asked
        ORDER BY asked.place;
END
$$;
COMMENT ON FUNCTION nearsim.dedupe(bigint[], double precision, text) IS
    'Deduplicates a result set in its order: a document is kept unless it is a pair, of at least min_similarity, with an earlier document that is kept; else it is a duplicate of the most similar one of these. By default all pairs count; min_similarity is at least the recipe''s threshold (1 / (1 + threshold) for a distance), unless the recipe stores pairs by their shared bands. The similarity is an estimate where verified is false. Vetoed pairs do not count, pinned pairs do. A repeated id is a duplicate of the first; unknown documents and documents that are not indexed are kept';
