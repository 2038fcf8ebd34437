-- Which roles were granted which lasting collections; roles may be gone by now.
SELECT collection.name, access.role_name, access.may_write
FROM nearsim.collection_access AS access JOIN nearsim.collection USING (collection_id)
WHERE NOT collection.temporary
ORDER BY collection.name, access.role_name
