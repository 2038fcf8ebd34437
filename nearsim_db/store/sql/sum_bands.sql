-- The band rows of each document: how many, and the sum without carry of their hashes. Reads and sorts the whole table.
SELECT doc_id, count(*), bit_xor(bucket_hash) FROM {band} GROUP BY doc_id ORDER BY doc_id
