-- Documents of a collection are gone: work is made of that for every generation, as of any other change.
INSERT INTO nearsim.change (collection_id, doc_id)
SELECT %(collection_id)s, doc_id FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS gone (doc_id)
