-- A role may read a collection, or write it too; what it was granted before it keeps. Relies on collection_access_pkey.
INSERT INTO nearsim.collection_access AS held (collection_id, role_name, may_write)
VALUES (%(collection_id)s, %(user)s, %(may_write)s)
ON CONFLICT (collection_id, role_name) DO UPDATE SET may_write = held.may_write OR excluded.may_write
