CREATE FUNCTION nearsim.require_reason(what text, why text, by text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF btrim(coalesce(why, '')) = '' OR btrim(coalesce(by, '')) = '' THEN
        RAISE EXCEPTION '% needs a reason (why) and an author (by)', what USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
COMMENT ON FUNCTION nearsim.require_reason(text, text, text) IS
    'Internal (used by functions that store verdicts and choices of documents to keep): raises an error if the reason or the author is missing';
