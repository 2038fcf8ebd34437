-- Take notes of source rows of one collection; NULL stands for all of its table. Reads nearsim.change up to the last of them.
DELETE FROM nearsim.change WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM nearsim.change WHERE collection_id = %(collection_id)s AND doc_id IS NULL
    LIMIT %(batch)s FOR UPDATE SKIP LOCKED))
RETURNING external_id
