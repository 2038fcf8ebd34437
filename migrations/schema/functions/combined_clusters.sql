-- Unites clusters of different profiles that share a document, with a union-find: `roots` maps each cluster's number to a
-- smaller number in the same union, or to itself.
CREATE FUNCTION nearsim.combined_clusters(collection text, profiles text[] DEFAULT NULL)
RETURNS TABLE (cluster_id bigint, documents bigint, doc_id bigint, external_id text, is_survivor boolean,
    survivor_id bigint, survivor_external_id text)
LANGUAGE plpgsql STABLE ROWS 1000 SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET jit = off AS $$
DECLARE
    home integer;
    generations integer[];
    keep text COLLATE "default";
    sources text[] COLLATE "default";
    roots integer[];
    link record;
    left_root integer;
    right_root integer;
BEGIN
    home := nearsim.collection_named(collection);
    SELECT array_agg(live.generation_id), (array_agg(live.recipe #>> '{cluster,keep}' ORDER BY live.place))[1]
    INTO generations, keep
    FROM nearsim.live_generations_of(home, profiles) AS live;
    sources := ARRAY(
        SELECT regexp_replace(named.source, '^\s+|\s+$', '', 'g')
        FROM unnest(string_to_array(substr(keep, length('source:') + 1), ',')) WITH ORDINALITY AS named (source, place)
        WHERE keep LIKE 'source:%' AND named.source ~ '\S' ORDER BY named.place);
    SELECT array_agg(number) INTO roots
    FROM generate_series(1, (
        SELECT CAST(count(*) AS integer) FROM (
            SELECT DISTINCT member.generation_id, member.cluster_id FROM nearsim.cluster_member AS member
            WHERE member.generation_id = ANY (generations)) AS cluster)) AS number;
    FOR link IN
        SELECT DISTINCT found.first, found.number
        FROM (
            SELECT numbered.number, min(numbered.number) OVER (PARTITION BY numbered.doc_id) AS first
            FROM (
                SELECT member.doc_id,
                    CAST(dense_rank() OVER (ORDER BY member.generation_id, member.cluster_id) AS integer) AS number
                FROM nearsim.cluster_member AS member WHERE member.generation_id = ANY (generations)
            ) AS numbered
        ) AS found
        WHERE found.first <> found.number
    LOOP
        left_root := link.first;
        WHILE roots[left_root] <> left_root LOOP
            roots[left_root] := roots[roots[left_root]];
            left_root := roots[left_root];
        END LOOP;
        right_root := link.number;
        WHILE roots[right_root] <> right_root LOOP
            roots[right_root] := roots[roots[right_root]];
            right_root := roots[right_root];
        END LOOP;
        roots[greatest(left_root, right_root)] := least(left_root, right_root);
    END LOOP;
    FOR number IN 1 .. coalesce(cardinality(roots), 0) LOOP
        roots[number] := roots[roots[number]];
    END LOOP;
    RETURN QUERY
        SELECT min(ranked.doc_id) OVER (PARTITION BY ranked.root), ranked.documents, ranked.doc_id, ranked.external_id,
            ranked.doc_id = ranked.kept_id, ranked.kept_id, ranked.kept_external_id
        FROM (
            SELECT tied.root, document.doc_id, document.external_id, count(*) OVER (PARTITION BY tied.root) AS documents,
                first_value(document.doc_id) OVER by_policy AS kept_id,
                first_value(document.external_id) OVER by_policy AS kept_external_id
            FROM (
                SELECT numbered.doc_id, min(roots[numbered.number]) AS root
                FROM (
                    SELECT member.doc_id,
                        CAST(dense_rank() OVER (ORDER BY member.generation_id, member.cluster_id) AS integer) AS number
                    FROM nearsim.cluster_member AS member WHERE member.generation_id = ANY (generations)
                ) AS numbered
                GROUP BY numbered.doc_id
            ) AS tied
            JOIN nearsim.document ON document.doc_id = tied.doc_id AND document.collection_id = home
            LEFT JOIN (
                SELECT pin.doc_id, max(pin.pin_id) AS newest FROM nearsim.survivor_pin AS pin
                WHERE pin.collection_id = home AND pin.undone_at IS NULL GROUP BY pin.doc_id
            ) AS chosen ON chosen.doc_id = tied.doc_id
            WINDOW by_policy AS (PARTITION BY tied.root ORDER BY
                chosen.newest DESC NULLS LAST,
                array_position(sources, document.source) NULLS LAST,
                CASE WHEN keep LIKE 'highest:%' THEN jsonb_path_query_first(
                    nearsim.value_of(btrim(substr(keep, length('highest:') + 1)), document.source, document.attributes),
                    'strict $.double()', silent => true) END DESC NULLS LAST,
                CASE WHEN keep = 'longest' THEN coalesce(length(document.title), 0)
                    + coalesce(length(document.body), document.body_length, 0) END DESC NULLS LAST,
                CASE WHEN keep = 'latest' THEN coalesce(document.published_at, document.created_at) END DESC NULLS LAST,
                coalesce(document.published_at, document.created_at),
                CASE WHEN keep = 'latest' THEN -document.doc_id ELSE document.doc_id END)
        ) AS ranked
        WHERE ranked.documents > 1
        ORDER BY 1, 3;
END
$$;
COMMENT ON FUNCTION nearsim.combined_clusters(text, text[]) IS
    'The clusters of several profiles together, by default of all live profiles: clusters of different profiles that share a document are merged. The document to keep is the one that a person chose last or, if nobody chose, the one that the keep policy of the first profile chooses (the policy central counts as earliest here). Documents that a veto separates under one profile may still be connected through others';
