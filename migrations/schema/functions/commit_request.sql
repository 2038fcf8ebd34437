CREATE PROCEDURE nearsim.commit_request()
LANGUAGE plpgsql AS $$
BEGIN
    COMMIT;
END
$$;
COMMENT ON PROCEDURE nearsim.commit_request() IS
    'Internal (used by similar_to_text): commits the request; its name appears in the context of the error inside an open transaction';
