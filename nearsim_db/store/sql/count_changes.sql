-- Noted changes of one collection, or of all lasting ones, that are not work yet; those of everything are of each.
-- Reads all of nearsim.change.
SELECT count(*) FROM nearsim.change LEFT JOIN nearsim.collection USING (collection_id)
WHERE change.collection_id IS NULL OR collection_id = %(collection_id)s
    OR %(collection_id)s IS NULL AND collection.temporary IS FALSE
