-- The lock of a collection's checked insertions: shared by insertions that were checked in an index; exclusive for insertions
-- that were checked without one, and for a promotion, after which texts have other buckets.
CREATE FUNCTION nearsim.insertion_lock(collection_id integer) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN CAST(28281 AS bigint) << 48 | CAST(1 AS bigint) << 47 | collection_id;
COMMENT ON FUNCTION nearsim.insertion_lock(integer) IS
    'Internal (used by lock_buckets and promote_generation): number of the advisory lock of a collection''s checked insertions';
