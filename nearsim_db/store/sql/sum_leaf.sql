-- How many rows one of a generation's own tables has, and the sum without carry of their hashed keys.
SELECT count(*), coalesce(bit_xor(hashint8extended({first}, hashint8extended({second}, 0))), 0) FROM {leaf}
