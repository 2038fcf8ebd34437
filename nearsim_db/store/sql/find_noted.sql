-- The collections of which source rows were noted. Reads all of nearsim.change, which is short.
SELECT DISTINCT collection_id FROM nearsim.change WHERE doc_id IS NULL AND collection_id IS NOT NULL ORDER BY 1
