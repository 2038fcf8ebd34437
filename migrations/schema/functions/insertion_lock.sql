-- The lock of a collection's checked insertions. Insertions that were checked in an index share it. Insertions that were
-- checked without an index take it exclusively; so does a promotion, after which texts have other buckets.
CREATE FUNCTION nearsim.insertion_lock(collection_id integer) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN CAST(28281 AS bigint) << 48 | CAST(1 AS bigint) << 47 | collection_id;
COMMENT ON FUNCTION nearsim.insertion_lock(integer) IS
    'Internal (used by lock_buckets and promote_generation): the number of the advisory lock of a collection''s checked insertions';
