CREATE PROCEDURE nearsim.commit_request()
LANGUAGE plpgsql AS $$
BEGIN
    COMMIT;
END
$$;
COMMENT ON PROCEDURE nearsim.commit_request() IS
    'Part of similar_to_text: a step that stands in the context of the error where that is called in an open transaction';
