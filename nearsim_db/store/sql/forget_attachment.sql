-- The collection follows no table any more.
WITH noted AS (
    DELETE FROM nearsim.change WHERE collection_id = %(collection_id)s AND doc_id IS NULL
)
DELETE FROM nearsim.attachment WHERE collection_id = %(collection_id)s
