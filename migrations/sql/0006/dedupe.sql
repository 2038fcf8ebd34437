-- Both run with the rights of their owner, so that the leaves can be read by name. Rely on the leaves' keys: one descent
-- for each document, and for two heads at most one.
CREATE FUNCTION nearsim.heads_of(generation_id integer, doc_ids bigint[]) RETURNS TABLE (doc_id bigint, head_id bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 100
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off AS $$
BEGIN
    IF nearsim.sees_generation(generation_id) THEN
        RETURN QUERY EXECUTE format(
            'SELECT doc_id, head_id FROM nearsim.%I WHERE doc_id = ANY ($1)', 'signature_' || generation_id)
            USING doc_ids;
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.heads_of(integer, bigint[]) IS
    'Part of dedupe: those of some documents that a generation that the caller may read has, and their heads';

CREATE FUNCTION nearsim.pairs_between(generation_id integer, head_ids bigint[])
RETURNS TABLE (left_id bigint, right_id bigint, similarity double precision)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 100
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    IF nearsim.sees_generation(generation_id) THEN
        RETURN QUERY EXECUTE format($query$
            SELECT own.head_id, pair.right_id, pair.similarity
            FROM unnest($1) WITH ORDINALITY AS own (head_id, place)
            CROSS JOIN LATERAL (
                SELECT right_id, similarity FROM nearsim.%I
                WHERE left_id = own.head_id AND right_id = ANY ($1[own.place + 1 :]) OFFSET 0
            ) AS pair
            $query$, 'similar_pair_' || generation_id)
            USING head_ids;
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.pairs_between(integer, bigint[]) IS
    'Part of dedupe: the stored pairs of some heads, given in ascending order, in a generation that the caller may read';

-- Who may be a duplicate of whom, by their places in a result set. Of a head's documents only the first is ever kept, and
-- the others need not be looked at as earlier ones, unless a person said something of any of them.
CREATE FUNCTION nearsim.links_among(
    generation_id integer, doc_ids bigint[], head_ids bigint[], min_similarity double precision)
RETURNS TABLE (later integer, earlier integer, similarity double precision)
LANGUAGE plpgsql STABLE ROWS 1000 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    RETURN QUERY
        WITH signed AS MATERIALIZED (
            SELECT CAST(given.place AS integer) AS place, given.doc_id, given.head_id
            FROM unnest(doc_ids, head_ids) WITH ORDINALITY AS given (doc_id, head_id, place)
        ), said AS MATERIALIZED (
            SELECT signed.doc_id AS left_id, verdict.right_id, verdict.verdict
            FROM signed CROSS JOIN LATERAL (
                SELECT standing.right_id, standing.verdict FROM nearsim.verdict AS standing
                WHERE standing.left_id = signed.doc_id AND standing.undone_at IS NULL OFFSET 0
            ) AS verdict
            WHERE verdict.right_id = ANY (doc_ids)
        ), keeper AS MATERIALIZED (
            SELECT signed.* FROM signed
            JOIN (
                SELECT head_id, min(place) AS first, bool_or(doc_id IN (
                    SELECT left_id FROM said UNION ALL SELECT right_id FROM said)) AS is_decided
                FROM signed GROUP BY head_id
            ) AS family USING (head_id)
            WHERE family.is_decided OR signed.place = family.first
        ), pair AS MATERIALIZED (
            SELECT * FROM nearsim.pairs_between(links_among.generation_id,
                ARRAY(SELECT DISTINCT head_id FROM signed WHERE head_id IS NOT NULL ORDER BY head_id))
        ), alike AS (
            SELECT left_id AS head_id, right_id AS other_id, pair.similarity FROM pair
            UNION ALL
            SELECT right_id, left_id, pair.similarity FROM pair
            UNION ALL
            SELECT DISTINCT head_id, head_id, CAST(1 AS double precision) FROM signed WHERE head_id IS NOT NULL
        )
        SELECT late.place, early.place, alike.similarity
        FROM keeper AS early
        JOIN alike ON alike.head_id = early.head_id
        JOIN signed AS late ON late.head_id = alike.other_id AND late.place > early.place
        LEFT JOIN said ON said.left_id = least(late.doc_id, early.doc_id)
            AND said.right_id = greatest(late.doc_id, early.doc_id)
        WHERE CASE said.verdict WHEN 'pinned' THEN true WHEN 'vetoed' THEN false
            ELSE alike.similarity >= min_similarity END
        UNION ALL
        SELECT greatest(l.place, r.place), least(l.place, r.place), NULL
        FROM said JOIN signed AS l ON l.doc_id = said.left_id JOIN signed AS r ON r.doc_id = said.right_id
        WHERE said.verdict = 'pinned';
END
$$;
COMMENT ON FUNCTION nearsim.links_among(integer, bigint[], bigint[], double precision) IS
    'Part of dedupe: by their places, which of some documents may be duplicates of which earlier ones';

CREATE FUNCTION nearsim.visible_among(doc_ids bigint[], OUT home integer, OUT known bigint[])
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    homes integer[];
BEGIN
    SELECT array_agg(DISTINCT found.collection_id), array_agg(found.doc_id ORDER BY found.place) INTO homes, known
    FROM (
        SELECT named.collection_id, named.doc_id, min(given.place) AS place
        FROM unnest(doc_ids) WITH ORDINALITY AS given (doc_id, place)
        CROSS JOIN LATERAL (
            SELECT document.collection_id, document.doc_id FROM nearsim.document
            WHERE document.doc_id = given.doc_id LIMIT 1
        ) AS named
        GROUP BY named.collection_id, named.doc_id
    ) AS found;
    IF cardinality(homes) > 1 THEN
        RAISE EXCEPTION 'the documents are of several collections: %', (
            SELECT string_agg(collection.name, ', ' ORDER BY collection.name) FROM nearsim.collection
            WHERE collection.collection_id = ANY (homes)) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    home := homes[1];
END
$$;
COMMENT ON FUNCTION nearsim.visible_among(bigint[]) IS
    'Part of dedupe: those of some documents that are there, each once, in their order, and their collection; an error where there are several';

CREATE FUNCTION nearsim.dedupe(doc_ids bigint[], min_similarity double precision DEFAULT NULL, profile text DEFAULT NULL)
RETURNS TABLE (place integer, doc_id bigint, keep boolean, duplicate_of bigint, similarity double precision,
    indexed boolean)
LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    given record;
    live record;
    least_alike double precision;
    heads bigint[];
    signed boolean[];
    link record;
    kept_as integer[];
    alike double precision[];
BEGIN
    SELECT * INTO given FROM nearsim.visible_among(doc_ids);
    IF given.home IS NOT NULL THEN
        SELECT * INTO STRICT live FROM nearsim.serving(given.home, profile);
        least_alike := coalesce(min_similarity, live.threshold);
        IF NOT least_alike BETWEEN live.threshold AND 1 THEN
            RAISE EXCEPTION 'a similarity of % is outside %..1: pairs below the threshold of the recipe are not stored',
                least_alike, live.threshold USING ERRCODE = 'invalid_parameter_value';
        END IF;
        SELECT array_agg(own.head_id ORDER BY known.place), array_agg(own.doc_id IS NOT NULL ORDER BY known.place)
        INTO heads, signed
        FROM unnest(given.known) WITH ORDINALITY AS known (doc_id, place)
        LEFT JOIN nearsim.heads_of(live.generation_id, given.known) AS own ON own.doc_id = known.doc_id;
        FOR link IN
            SELECT * FROM nearsim.links_among(live.generation_id, given.known, heads, least_alike) AS found
            ORDER BY found.later, found.similarity DESC NULLS LAST, found.earlier
        LOOP
            IF kept_as[link.later] IS NULL AND kept_as[link.earlier] IS NULL THEN
                kept_as[link.later] := link.earlier;
                alike[link.later] := link.similarity;
            END IF;
        END LOOP;
    END IF;
    RETURN QUERY
        SELECT CAST(asked.place AS integer), asked.doc_id, asked.decided_by IS NULL AND asked.occurrence = 1,
            CASE WHEN asked.decided_by IS NOT NULL THEN given.known[asked.decided_by]
                WHEN asked.occurrence > 1 THEN asked.doc_id END,
            CASE WHEN asked.decided_by IS NOT NULL THEN alike[asked.known_place]
                WHEN asked.occurrence > 1 THEN 1 END,
            coalesce(signed[asked.known_place], false)
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
    'For a result set, in its order: a document is kept unless it is a pair, of at least min_similarity, with an earlier one that is kept; then it is a duplicate of the most similar of them. The least min_similarity is the threshold of the recipe, which it has when it is left out. Pairs that were vetoed are none, and those pinned are. An id that is met again is a duplicate of the first; documents that are unknown or not indexed are kept';
