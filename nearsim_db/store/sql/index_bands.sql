-- After the load: the only index, on which the self-join and every lookup run.
CREATE UNIQUE INDEX ON {band} (bucket_hash, doc_id)
