-- Before this runs, row-level security of checked_insertion has refused rows for collections to which the caller may not
-- write. All callers take the locks in the same order. A generation has 1,024 locks. Near-duplicates share a bucket, and
-- therefore at least one of these locks. More locks would let more callers run at once, but would take more of the server's
-- lock table.
CREATE FUNCTION nearsim.lock_buckets() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- The upper 16 bits of the number keep these advisory locks apart from other applications' locks.
    space constant bigint := CAST(28281 AS bigint) << 48;
    own_secret bytea;
BEGIN
    IF TG_RELID <> CAST('nearsim_index.checked_insertion' AS regclass) THEN
        RAISE EXCEPTION 'this trigger belongs to nearsim_index.checked_insertion' USING ERRCODE = 'insufficient_privilege';
    END IF;

    IF NEW.generation_id IS NULL THEN
        PERFORM pg_advisory_xact_lock(nearsim.insertion_lock(NEW.collection_id));
        RETURN NULL;
    END IF;

    PERFORM pg_advisory_xact_lock_shared(nearsim.insertion_lock(NEW.collection_id));
    SELECT lock_secret.secret INTO own_secret
    FROM nearsim_index.lock_secret JOIN nearsim.generation USING (generation_id) JOIN nearsim.profile USING (profile_id)
    WHERE generation.generation_id = NEW.generation_id AND profile.collection_id = NEW.collection_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'collection % has no generation %', NEW.collection_id, NEW.generation_id
            USING ERRCODE = 'foreign_key_violation';
    END IF;

    PERFORM pg_advisory_xact_lock(key) FROM (
        SELECT DISTINCT space | CAST(CAST('x' || encode(substring(
            sha256(own_secret || convert_to(format(' %s %s', NEW.generation_id, bucket_hash & 1023), 'UTF8'))
            FROM 1 FOR 6), 'hex') AS bit(48)) AS bigint) AS key
        FROM unnest(NEW.bucket_hashes) AS bucket_hash
        ORDER BY key
    ) AS stripe;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION nearsim.lock_buckets() IS
    'Trigger on checked_insertion: takes the advisory locks of a text''s buckets until the transaction ends; their numbers depend on the generation''s secret';

CREATE TRIGGER checked_insertion_lock AFTER INSERT ON nearsim_index.checked_insertion
    FOR EACH ROW EXECUTE FUNCTION nearsim.lock_buckets();
