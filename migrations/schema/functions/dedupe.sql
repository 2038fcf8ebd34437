-- Similarities are compared with the recipe's least similarity, because the threshold may be a distance.
CREATE FUNCTION nearsim.dedupe(
    doc_ids bigint[], min_similarity double precision DEFAULT NULL, profile text DEFAULT NULL)
RETURNS TABLE (place integer, doc_id bigint, keep boolean, duplicate_of bigint, similarity double precision,
    indexed boolean, verified boolean)
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    visible record;
    live record;
    heads bigint[];
    are_signed boolean[];
    link record;
    earlier_places integer[];
    similarities double precision[];
    are_verified boolean[];
    lowest_stored double precision;
BEGIN
    SELECT * INTO visible FROM nearsim.visible_among(doc_ids);
    IF visible.home IS NOT NULL THEN
        SELECT * INTO live FROM nearsim.live_generation(visible.home, profile, visible.known[1]);
        IF FOUND THEN
            -- Pairs that count because of their shared bands are stored whatever their similarity.
            lowest_stored := CASE WHEN live.recipe #>> '{match,certain_shared_bands}' <> '0' THEN 0
                ELSE nearsim.least_similarity(live.recipe) END;
            IF NOT min_similarity BETWEEN lowest_stored AND 1 THEN
                RAISE EXCEPTION 'a similarity of % is outside %..1: pairs below the threshold of the recipe are not stored',
                    min_similarity, lowest_stored USING ERRCODE = 'invalid_parameter_value';
            END IF;
            SELECT array_agg(head_row.head_id ORDER BY known.place), array_agg(head_row.doc_id IS NOT NULL ORDER BY known.place)
            INTO heads, are_signed
            FROM unnest(visible.known) WITH ORDINALITY AS known (doc_id, place)
            LEFT JOIN nearsim.heads_of(live.generation_id, visible.known) AS head_row ON head_row.doc_id = known.doc_id;
            FOR link IN
                SELECT * FROM nearsim.links_among(
                    live.generation_id, visible.known, heads, coalesce(min_similarity, 0)) AS found
                ORDER BY found.later, found.similarity DESC NULLS LAST, found.earlier
            LOOP
                IF earlier_places[link.later] IS NULL AND earlier_places[link.earlier] IS NULL THEN
                    earlier_places[link.later] := link.earlier;
                    similarities[link.later] := link.similarity;
                    are_verified[link.later] := CASE WHEN link.similarity IS NOT NULL
                        THEN nearsim.is_exact(live.recipe) OR heads[link.later] = heads[link.earlier] END;
                END IF;
            END LOOP;
        END IF;
    END IF;
    RETURN QUERY
        SELECT CAST(entry.place AS integer), entry.doc_id, entry.decided_by IS NULL AND entry.occurrence = 1,
            CASE WHEN entry.decided_by IS NOT NULL THEN visible.known[entry.decided_by]
                WHEN entry.occurrence > 1 THEN entry.doc_id END,
            CASE WHEN entry.decided_by IS NOT NULL THEN similarities[entry.known_place]
                WHEN entry.occurrence > 1 THEN 1 END,
            coalesce(are_signed[entry.known_place], false),
            CASE WHEN entry.decided_by IS NOT NULL THEN are_verified[entry.known_place]
                WHEN entry.occurrence > 1 THEN true END
        FROM (
            SELECT given.place, given.doc_id, known.place AS known_place, earlier_places[known.place] AS decided_by,
                CASE WHEN given.doc_id IS NULL THEN 1
                    ELSE row_number() OVER (PARTITION BY given.doc_id ORDER BY given.place) END AS occurrence
            FROM unnest(dedupe.doc_ids) WITH ORDINALITY AS given (doc_id, place)
            LEFT JOIN unnest(visible.known) WITH ORDINALITY AS known (doc_id, place) ON known.doc_id = given.doc_id
        ) AS entry
        ORDER BY entry.place;
END
$$;
COMMENT ON FUNCTION nearsim.dedupe(bigint[], double precision, text) IS
    'Deduplicates a result set in its order. A document is a duplicate if it is a pair, with a similarity of at least min_similarity, with an earlier document that is kept; duplicate_of is the most similar of these documents. All other documents are kept. By default all pairs count; min_similarity cannot be below the recipe''s threshold (1 / (1 + threshold) for a distance), unless the recipe stores pairs because of their shared bands. The similarity is an estimate where verified is false. Vetoed pairs do not count, pinned pairs do. A repeated id is a duplicate of its first occurrence; documents that do not exist or are not indexed are kept';
