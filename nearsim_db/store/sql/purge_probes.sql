-- All probes of a collection go: any of them may hold the text that is purged. Reads the table from end to end.
DELETE FROM nearsim.probe WHERE collection_id = %(collection_id)s
