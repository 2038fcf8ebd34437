-- Documents go that were noted and have no row in the table that their collection follows. Relies on
-- document_external_id_key and on the table's key, which is asked one by one (the OFFSET forbids to join).
DELETE FROM nearsim.document AS followed
WHERE followed.collection_id = %(collection_id)s AND followed.external_id = ANY(CAST(%(ids)s AS text[]))
    AND NOT EXISTS (
        SELECT FROM {relation} AS source
        WHERE source.{id} = {key} AND CAST(source.{id} AS text) COLLATE "C" = followed.external_id OFFSET 0)
