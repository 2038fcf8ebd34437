-- Computes the band keys of a sketch in the way that its recipe says.
CREATE FUNCTION nearsim.keys_under(recipe jsonb, bands integer, rows integer, sketch bytea) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    width constant integer := octet_length(sketch) / CAST(recipe #>> '{sketch,k}' AS integer);
    seed constant bigint := recipe #>> '{sketch,seed}';
BEGIN
    IF recipe #>> '{sketch,family}' = 'winnow' THEN
        RETURN (nearsim.positions(sketch, 8, false))[2:];
    END IF;
    IF recipe #>> '{sketch,family}' IN ('bottom_k', 'rare') THEN
        RETURN nearsim.smallest_keys(nearsim.positions(sketch, width, false), bands, seed);
    END IF;
    RETURN nearsim.band_keys(sketch, bands, rows, seed, width, recipe #>> '{bands,hash}',
        coalesce(recipe #>> '{sketch,functions}' = 'java32', false));
END
$$;
COMMENT ON FUNCTION nearsim.keys_under(jsonb, integer, integer, bytea) IS
    'Internal (used by buckets_of): the bucket_hash of each band of a sketch under its recipe';
