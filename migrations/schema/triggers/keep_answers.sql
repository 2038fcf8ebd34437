-- The only change that a writer may make to another user's row is to end an expired lease.
CREATE FUNCTION nearsim.keep_answers() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'review % is of %, and only that user changes it', OLD.review_id, OLD.reviewer
        USING ERRCODE = 'insufficient_privilege';
END
$$;
COMMENT ON FUNCTION nearsim.keep_answers() IS
    'Trigger on review: refuses changes of what another user was shown or answered';

CREATE TRIGGER review_keep_answers BEFORE UPDATE ON nearsim.review
    FOR EACH ROW WHEN (OLD.reviewer <> current_user AND (OLD.leased_until > now() OR NEW.leased_until IS NOT NULL
        OR (OLD.answer, OLD.why, OLD.decided_at, OLD.decision_id, OLD.verdict_id, OLD.replaced_id, OLD.pin_id, OLD.undone_at)
        IS DISTINCT FROM (NEW.answer, NEW.why, NEW.decided_at, NEW.decision_id, NEW.verdict_id, NEW.replaced_id,
            NEW.pin_id, NEW.undone_at)))
    EXECUTE FUNCTION nearsim.keep_answers();
