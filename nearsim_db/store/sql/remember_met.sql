-- The batch's ids and lines, for the batches after it.
INSERT INTO met (external_id, line) SELECT external_id, line FROM incoming
ON CONFLICT (external_id) DO UPDATE SET line = excluded.line
