-- Unites clusters of different profiles that share a document, with a union-find: `roots` maps each cluster's number to a
-- smaller number in the same union, or to itself.
CREATE FUNCTION nearsim.combined_clusters(collection text, profiles text[] DEFAULT NULL)
RETURNS TABLE (cluster_id bigint, documents bigint, doc_id bigint, external_id text, is_survivor boolean,
    survivor_id bigint, survivor_external_id text)
LANGUAGE plpgsql STABLE ROWS 1000 SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET jit = off AS $$
DECLARE
    home integer;
    generations integer[];
    rules text[];
    keeps_none boolean;
    prefers_last boolean;
    roots integer[];
    link record;
    left_root integer;
    right_root integer;
BEGIN
    home := nearsim.collection_named(collection);
    SELECT array_agg(live.generation_id), nearsim.keep_rules((array_agg(live.recipe ORDER BY live.place))[1])
    INTO generations, rules
    FROM nearsim.live_generations_of(home, profiles) AS live;
    keeps_none := rules = '{none}';
    prefers_last := (
        SELECT named.rule = 'latest' FROM unnest(rules) WITH ORDINALITY AS named (rule, place)
        WHERE named.rule IN ('earliest', 'latest') ORDER BY named.place DESC LIMIT 1);
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
            coalesce(ranked.doc_id = ranked.kept_id, false), ranked.kept_id, ranked.kept_external_id
        FROM (
            SELECT tied.root, document.doc_id, document.external_id, count(*) OVER (PARTITION BY tied.root) AS documents,
                CASE WHEN NOT keeps_none OR first_value(chosen.newest) OVER by_policy IS NOT NULL
                    THEN first_value(document.doc_id) OVER by_policy END AS kept_id,
                CASE WHEN NOT keeps_none OR first_value(chosen.newest) OVER by_policy IS NOT NULL
                    THEN first_value(document.external_id) OVER by_policy END AS kept_external_id
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
                nearsim.keep_keys(rules, NULL, document.title, document.body, document.body_length, document.source, document.url,
                    document.published_at, document.created_at, document.attributes),
                coalesce(document.published_at, document.created_at),
                CASE WHEN prefers_last THEN -document.doc_id ELSE document.doc_id END)
        ) AS ranked
        WHERE ranked.documents > 1
        ORDER BY 1, 3;
END
$$;
COMMENT ON FUNCTION nearsim.combined_clusters(text, text[]) IS
    'The clusters of several profiles together, by default of all live profiles: clusters of different profiles that share a document are merged. The document to keep is the one that a person chose last or, if nobody chose, the one that the keep policy of the first profile chooses (the policy central counts as earliest here, and none keeps no document). Documents that a veto separates under one profile may still be connected through others';
