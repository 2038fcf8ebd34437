-- A digest ends with a label of the document: six bytes for the values of the fields in match.within, four bytes for its date
-- in minutes (0 if it has none), and five bytes for the value of the field in match.across. Each part is there only if the
-- recipe has the key (nearsim_db/similarity/field_rules.py).
CREATE FUNCTION nearsim.exclusion_of(recipe jsonb, one uuid, other uuid) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    within constant text := nullif(recipe #>> '{match,within}', 'none');
    days constant integer := coalesce(CAST(recipe #>> '{match,within_days}' AS integer), 0);
    across constant text := nullif(recipe #>> '{match,across}', 'none');
    date_begin constant integer := CASE WHEN within IS NULL THEN 1 ELSE 13 END;
    across_begin constant integer := date_begin + CASE WHEN days > 0 THEN 8 ELSE 0 END;
    size constant integer := across_begin - 1 + CASE WHEN across IS NULL THEN 0 ELSE 10 END;
    label constant text := right(replace(CAST(one AS text), '-', ''), size);
    other_label constant text := right(replace(CAST(other AS text), '-', ''), size);
    minutes bigint := 0;
    other_minutes bigint := 0;
BEGIN
    IF days > 0 THEN
        minutes := CAST(CAST('x' || substr(label, date_begin, 8) AS bit(32)) AS bigint);
        other_minutes := CAST(CAST('x' || substr(other_label, date_begin, 8) AS bit(32)) AS bigint);
    END IF;
    RETURN CASE
        WHEN within IS NOT NULL AND left(label, 12) <> left(other_label, 12)
            THEN format('their values of %s differ, within which pairs count (match.within)',
                translate(within, '[]"', ''))
        WHEN (minutes = 0) <> (other_minutes = 0) OR abs(minutes - other_minutes) > CAST(days AS bigint) * 1440
            THEN format('their dates are more than %s %s apart (match.within_days)', days,
                CASE days WHEN 1 THEN 'day' ELSE 'days' END)
        WHEN across IS NOT NULL AND right(label, 10) = right(other_label, 10)
            THEN format('their values of %s are equal, across which pairs count (match.across)', across)
    END;
END
$$;
COMMENT ON FUNCTION nearsim.exclusion_of(jsonb, uuid, uuid) IS
    'Internal (used by may_pair and why_not): the rule of the recipe (match.within, match.within_days, match.across) that keeps documents with these feature digests from being a pair; NULL if there is none';
