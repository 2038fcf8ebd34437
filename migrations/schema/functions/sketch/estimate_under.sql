-- For most families, the estimate is the similarity at which the probability of agreement in a position equals the fraction of
-- equal positions.
CREATE FUNCTION nearsim.estimate_under(recipe jsonb, a bytea, b bytea) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    width constant integer := octet_length(a) / CAST(recipe #>> '{sketch,k}' AS integer);
    agreement double precision;
    mine bigint[];
    others bigint[];
BEGIN
    IF recipe #>> '{sketch,family}' = 'winnow' THEN
        mine := nearsim.positions(a, 8, false);
        others := nearsim.positions(b, 8, false);
        RETURN (
            SELECT least(1, count(*) * (greatest(mine[1], others[1]) + 1) / CAST(least(
                (cardinality(mine) - 1) * (mine[1] + 1), (cardinality(others) - 1) * (others[1] + 1)) AS double precision))
            FROM unnest(mine[2:]) AS own JOIN unnest(others[2:]) AS other ON own = other);
    END IF;
    IF recipe #>> '{sketch,family}' IN ('bottom_k', 'rare') THEN
        RETURN nearsim.estimate_smallest(nearsim.positions(a, width, false), nearsim.positions(b, width, false));
    END IF;
    agreement := nearsim.estimate(a, b, width);
    CASE nearsim.metric_of(recipe)
        WHEN 'cosine' THEN
            RETURN round(CAST(cos(pi() * (1 - agreement)) AS numeric), 12);
        WHEN 'euclidean' THEN
            RETURN CASE WHEN agreement IN (0, 1) THEN agreement
                ELSE round(CAST(1 / (1 + nearsim.width_of(recipe) / nearsim.width_ratio_of_probability(agreement)) AS numeric), 12)
                END;
        ELSE
            RETURN agreement;
    END CASE;
END
$$;
COMMENT ON FUNCTION nearsim.estimate_under(jsonb, bytea, bytea) IS
    'Internal (used by why and similar_to): the similarity estimated from two sketches of one recipe';
