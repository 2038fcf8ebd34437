-- A word is a number with its separators, a character of a script without spaces, a run of other characters, or a punctuation
-- mark. The expression lists ranges of code points, because classes such as \w depend on the locale of the database.
CREATE FUNCTION nearsim.words_of(content text) RETURNS TABLE (place bigint, word text, space text)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 500 SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
    SELECT found.place, found.parts[1], found.parts[2]
    FROM regexp_matches(content COLLATE "C",
        '([0-9]+(?:[.,:][0-9]+)*'
        '|[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]'
        '|[^\u0001-/0-9:-@[-^`{-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7\u060c\u061b\u061f\u1680\u2000-\u200b'
        '\u2010-\u205f\u2190-\u2bff\u2e80-\u9fff\uf900-\ufaff\ufeff\uff01-\uff0f\uff1a-\uff20\uff5b-\uff65\U00020000-\U0003ffff]+'
        '|[^\u0001-\u0020\u0085\u00a0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff])'
        '([\u0001-\u0020\u0085\u00a0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]*)',
        'g') WITH ORDINALITY AS found (parts, place)
$$;
COMMENT ON FUNCTION nearsim.words_of(text) IS
    'Internal (used by word_diff): the words of a text in order, each with the white space after it';

-- This is the greedy algorithm of E. W. Myers (An O(ND) Difference Algorithm and Its Variations, 1986). A diagonal is the
-- number of passed left words minus that of passed right words. For each number of edits, and in it for each diagonal,
-- `reached` has the number of left words that are passed; those for the number of edits before begin at edits * (edits - 1) /
-- 2. If max_edits do not suffice, the path that passes the most words counts, and all words after it differ.
CREATE FUNCTION nearsim.changed_runs(left_words integer[], right_words integer[], max_edits integer)
RETURNS TABLE (left_begin integer, left_end integer, right_begin integer, right_end integer)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 20 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    left_count constant integer := cardinality(left_words);
    right_count constant integer := cardinality(right_words);
    reached integer[] := '{}';
    start integer;
    former integer;
    x integer;
    y integer;
    edits integer := 0;
    diagonal integer;
    furthest_diagonal integer;
    furthest integer;
    is_removal boolean;
    bounds integer[] := '{}';
BEGIN
    <<search>>
    LOOP
        start := edits * (edits + 1) / 2;
        former := start - edits;
        furthest := -1;
        FOR place IN 0 .. edits LOOP
            diagonal := 2 * place - edits;
            x := CASE WHEN edits = 0 THEN 0
                WHEN place = 0 OR place < edits AND reached[former + place] < reached[former + place + 1]
                    THEN reached[former + place + 1]
                ELSE reached[former + place] + 1 END;
            y := x - diagonal;
            WHILE x < left_count AND y < right_count AND left_words[x + 1] = right_words[y + 1] LOOP
                x := x + 1;
                y := y + 1;
            END LOOP;
            reached[start + place + 1] := x;
            IF x <= left_count AND y <= right_count AND x + y > furthest THEN
                furthest := x + y;
                furthest_diagonal := diagonal;
            END IF;
            EXIT search WHEN x = left_count AND y = right_count;
        END LOOP;
        EXIT WHEN edits = max_edits;
        edits := edits + 1;
    END LOOP;

    -- Follow the path from its end back to its beginning. Each edit joins the run after it, unless equal words are between
    -- them.
    diagonal := furthest_diagonal;
    x := (furthest + diagonal) / 2;
    y := x - diagonal;
    IF x < left_count OR y < right_count THEN
        bounds := ARRAY[x, left_count, y, right_count];
    END IF;
    WHILE edits > 0 LOOP
        start := edits * (edits - 1) / 2;
        furthest := (diagonal + edits) / 2;
        is_removal := furthest = edits OR furthest > 0 AND reached[start + furthest] >= reached[start + furthest + 1];
        x := CASE WHEN is_removal THEN reached[start + furthest] ELSE reached[start + furthest + 1] END;
        diagonal := diagonal + CASE WHEN is_removal THEN -1 ELSE 1 END;
        y := x - diagonal;
        IF bounds[1] = x + is_removal::integer AND bounds[3] = y + 1 - is_removal::integer THEN
            bounds[1] := x;
            bounds[3] := y;
        ELSE
            bounds := ARRAY[x, x + is_removal::integer, y, y + 1 - is_removal::integer] || bounds;
        END IF;
        edits := edits - 1;
    END LOOP;
    RETURN QUERY SELECT bounds[at], bounds[at + 1], bounds[at + 2], bounds[at + 3]
        FROM generate_series(1, cardinality(bounds), 4) AS at;
END
$$;
COMMENT ON FUNCTION nearsim.changed_runs(integer[], integer[], integer) IS
    'Internal (used by word_diff): the runs of words in which two texts differ, in order; for each text, the numbers of words before the run and up to its end';

-- The functions by doc_id and by external_id have different names, so that an external id that is an integer is not mistaken
-- for a doc_id.
CREATE FUNCTION nearsim.word_diff_by_doc_id(a bigint, b bigint)
RETURNS TABLE (place integer, operation text, words text, word_count integer)
LANGUAGE plpgsql STABLE ROWS 20 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- Two texts of 10,000 words that differ throughout take less than a second.
    max_words constant integer := 10000;
    max_edits constant integer := 1000;
    left_texts text[];
    right_texts text[];
    left_numbers integer[];
    right_numbers integer[];
    uncompared integer;
    run record;
    passed_left integer := 0;
    produced integer;
BEGIN
    PERFORM nearsim.common_collection(a, b);
    -- Give each distinct word a number, because numbers are compared faster than texts.
    SELECT coalesce(array_agg(numbered.shown ORDER BY numbered.place) FILTER (WHERE is_left AND is_compared), '{}'),
        coalesce(array_agg(numbered.shown ORDER BY numbered.place) FILTER (WHERE NOT is_left AND is_compared), '{}'),
        coalesce(array_agg(numbered.number ORDER BY numbered.place) FILTER (WHERE is_left AND is_compared), '{}'),
        coalesce(array_agg(numbered.number ORDER BY numbered.place) FILTER (WHERE NOT is_left AND is_compared), '{}'),
        CAST(count(*) FILTER (WHERE NOT is_compared) AS integer)
    INTO left_texts, right_texts, left_numbers, right_numbers, uncompared
    FROM (
        SELECT document.doc_id = a AS is_left, split.place, split.word || split.space AS shown, split.place <= max_words AS is_compared,
            CAST(dense_rank() OVER (ORDER BY split.word COLLATE "C") AS integer) AS number
        FROM nearsim.document
        CROSS JOIN LATERAL nearsim.words_of(concat_ws(E'\n', document.title, nearsim.body_of(document.doc_id))) AS split
        WHERE document.doc_id IN (a, b)
    ) AS numbered;

    place := 0;
    FOR run IN
        SELECT * FROM nearsim.changed_runs(left_numbers, right_numbers, max_edits)
        UNION ALL
        SELECT cardinality(left_numbers), cardinality(left_numbers), cardinality(right_numbers), cardinality(right_numbers)
        ORDER BY left_begin, right_begin
    LOOP
        RETURN QUERY
            SELECT CAST(word_diff_by_doc_id.place + row_number() OVER (ORDER BY part.rank) AS integer), part.operation,
                rtrim(array_to_string(part.texts, ''), E' \t\n\r'), cardinality(part.texts)
            FROM (VALUES (1, 'equal', left_texts[passed_left + 1 : run.left_begin]),
                (2, 'removed', left_texts[run.left_begin + 1 : run.left_end]),
                (3, 'added', right_texts[run.right_begin + 1 : run.right_end])) AS part (rank, operation, texts)
            WHERE cardinality(part.texts) > 0 ORDER BY part.rank;
        GET DIAGNOSTICS produced = ROW_COUNT;
        place := place + produced;
        passed_left := run.left_end;
    END LOOP;
    IF uncompared > 0 THEN
        RETURN QUERY SELECT place + 1, 'not compared', CAST(NULL AS text), uncompared;
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.word_diff_by_doc_id(bigint, bigint) IS
    'The same as word_diff, for two documents named by their doc_ids';

CREATE FUNCTION nearsim.word_diff(a text, b text, collection text DEFAULT NULL)
RETURNS TABLE (place integer, operation text, words text, word_count integer)
LANGUAGE plpgsql STABLE ROWS 20 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM nearsim.word_diff_by_doc_id(
        nearsim.document_named(a, collection), nearsim.document_named(b, collection));
END
$$;
COMMENT ON FUNCTION nearsim.word_diff(text, text, text) IS
    'How the text of document a, its title and its body, becomes that of document b. Each row is a run of words, in order: equal (with the words of a), removed or added. Case and punctuation count, white space does not; each Chinese character or kana is a word of its own. After 1,000 removed and added words, all following words are a single change. Words after the first 10,000 of a text are only counted, in a last row with the operation "not compared". Name the collection if several have both documents';
