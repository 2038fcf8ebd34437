-- Queue documents for a stage.
INSERT INTO nearsim.work (generation_id, doc_id, stage)
SELECT {generation_id}, doc_id, %(stage)s FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS q (doc_id)
ON CONFLICT DO NOTHING
