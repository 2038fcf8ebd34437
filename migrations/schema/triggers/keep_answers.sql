-- A writer may change another user's row in only one way: by ending a lease that has expired.
CREATE FUNCTION nearsim.keep_answers() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'review % is of %, and only that user may change it', OLD.review_id, OLD.reviewer
        USING ERRCODE = 'insufficient_privilege';
END
$$;
COMMENT ON FUNCTION nearsim.keep_answers() IS
    'Trigger on review: raises an error if somebody changes a pair that another user was shown, or its answer';

CREATE TRIGGER review_keep_answers BEFORE UPDATE ON nearsim.review
    FOR EACH ROW WHEN (OLD.reviewer <> current_user AND (OLD.leased_until > now() OR NEW.leased_until IS NOT NULL
        OR (OLD.answer, OLD.why, OLD.decided_at, OLD.decision_id, OLD.verdict_id, OLD.replaced_id, OLD.pin_id, OLD.undone_at)
        IS DISTINCT FROM (NEW.answer, NEW.why, NEW.decided_at, NEW.decision_id, NEW.verdict_id, NEW.replaced_id,
            NEW.pin_id, NEW.undone_at)))
    EXECUTE FUNCTION nearsim.keep_answers();
