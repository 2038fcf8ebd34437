-- After the load: the key, and the index on which twins are found.
ALTER TABLE {signature} ADD PRIMARY KEY (doc_id);
CREATE INDEX ON {signature} (feature_digest, doc_id) WHERE feature_digest IS NOT NULL;
CREATE INDEX ON {signature} (head_id, doc_id) WHERE head_id <> doc_id
