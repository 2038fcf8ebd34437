-- For mix64, the bytes of the bands are compared instead of their keys: this is faster and excludes chance collisions.
CREATE FUNCTION nearsim.shared_bands(recipe jsonb, bands integer, rows integer, a bytea, b bytea) RETURNS smallint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    width constant integer := rows * (octet_length(a) / CAST(recipe #>> '{sketch,k}' AS integer));
    left_keys bigint[];
    right_keys bigint[];
BEGIN
    IF recipe #>> '{sketch,family}' = 'winnow' THEN
        RETURN ARRAY(
            SELECT CAST(own.place - 1 AS smallint)
            FROM unnest((nearsim.positions(a, 8, false))[2:]) WITH ORDINALITY AS own (fingerprint, place)
            JOIN unnest((nearsim.positions(b, 8, false))[2:]) AS other (fingerprint) USING (fingerprint)
            WHERE own.place <= 32767 ORDER BY own.place);
    END IF;
    IF recipe #>> '{bands,hash}' = 'mix64' AND recipe #>> '{sketch,family}' NOT IN ('bottom_k', 'rare') THEN
        RETURN ARRAY(
            SELECT CAST(band AS smallint) FROM generate_series(0, bands - 1) AS band
            WHERE substr(a, band * width + 1, width) = substr(b, band * width + 1, width) ORDER BY band);
    END IF;
    left_keys := nearsim.keys_under(recipe, bands, rows, a);
    right_keys := nearsim.keys_under(recipe, bands, rows, b);
    RETURN ARRAY(
        SELECT CAST(band AS smallint) FROM generate_series(0, bands - 1) AS band
        WHERE left_keys[band + 1] = ANY (right_keys) ORDER BY band);
END
$$;
COMMENT ON FUNCTION nearsim.shared_bands(jsonb, integer, integer, bytea, bytea) IS
    'Internal (used by why): the numbers, from 0, of the bands that two sketches of one recipe share. For bottom_k, rare and winnow: the positions, in the first sketch, of the features that both sketches have (for winnow only among the first 32,767)';
