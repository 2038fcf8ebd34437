-- What was noted of documents goes; a dispatcher that has taken some of it is waited for. Reads all notes.
DELETE FROM nearsim.change WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
