-- Verified pairs on their way into the ledger, with the digests they were verified under.
CREATE TEMP TABLE IF NOT EXISTS found (
    left_id bigint, right_id bigint, shared_bands smallint, estimate real, similarity double precision,
    intersection_size integer, union_size integer, left_digest uuid, right_digest uuid) ON COMMIT DELETE ROWS
