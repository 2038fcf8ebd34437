-- What a role was granted of some collections, or of all, is gone. Relies on collection_access_pkey.
DELETE FROM nearsim.collection_access
WHERE role_name = %(user)s AND (collection_id = ANY(CAST(%(collection_ids)s AS integer[])) OR %(collection_ids)s IS NULL)
