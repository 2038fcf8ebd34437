-- After the bulk load of pairs: the way from the right document, and the cascade from signatures.
CREATE INDEX ON {similar_pair} (right_id);
ALTER TABLE {similar_pair} ADD FOREIGN KEY (left_id) REFERENCES {signature} (doc_id) ON DELETE CASCADE;
ALTER TABLE {similar_pair} ADD FOREIGN KEY (right_id) REFERENCES {signature} (doc_id) ON DELETE CASCADE
