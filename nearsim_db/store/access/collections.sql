-- name: find_collection
-- A collection by its name. Relies on collection_name_key.
SELECT collection_id, name, created_at FROM nearsim.collection WHERE name = %(name)s

-- name: find_default_collection
-- The name of the collection to use if the caller names none: the default name if such a collection exists, or the only
-- collection, or NULL. Relies on collection_name_key; if no collection has the default name, all collections are counted.
SELECT coalesce(
    (SELECT name FROM nearsim.collection WHERE name = %(default)s),
    (SELECT min(name) FROM nearsim.collection HAVING count(*) = 1))

-- name: list_collections
-- All collections, sorted by name. Reads the whole table.
SELECT collection_id, name, created_at FROM nearsim.collection ORDER BY name

-- name: list_unindexed_collections
-- Collections that have documents but no profile, sorted by name. Reads all collections; relies on document_collection_doc.
SELECT collection_id, name, created_at FROM nearsim.collection
WHERE NOT EXISTS (SELECT FROM nearsim.profile WHERE profile.collection_id = collection.collection_id)
    AND EXISTS (SELECT FROM nearsim.document WHERE document.collection_id = collection.collection_id)
ORDER BY name

-- name: list_unfinished_collections
-- Collections with documents whose first index is not built yet, or whose live indexes have queued work, sorted by name.
-- Reads the queue; relies on generation_one_pending and on document_collection_doc.
SELECT collection_id, name, created_at FROM nearsim.collection
WHERE collection_id IN (
        SELECT collection_id FROM nearsim.profile JOIN nearsim.generation USING (profile_id)
        WHERE state = 'building' AND replaces IS NULL
            OR state = 'live' AND generation_id IN (SELECT generation_id FROM nearsim_index.queued_work))
    AND EXISTS (SELECT FROM nearsim.document WHERE document.collection_id = collection.collection_id)
ORDER BY name

-- name: create_collection
-- Create a collection; no row if a collection with this name exists.
INSERT INTO nearsim.collection (name) VALUES (%(name)s)
ON CONFLICT DO NOTHING RETURNING collection_id, name, created_at

-- name: rename_collection
-- Rename a collection. Relies on collection_pkey.
UPDATE nearsim.collection SET name = %(name)s WHERE collection_id = %(collection_id)s

-- name: delete_collection
-- Delete a collection with its documents and profiles. Relies on collection_pkey.
DELETE FROM nearsim.collection WHERE collection_id = %(collection_id)s

-- name: count_documents
-- Number of documents of a collection, up to `limit` unless it is NULL. Relies on document_collection_doc.
SELECT count(*)
FROM (SELECT FROM nearsim.document WHERE collection_id = %(collection_id)s LIMIT CAST(%(limit)s AS bigint)) AS document

-- name: list_purges
-- Time of the last purge, for those of the collections from which texts were purged. Relies on collection_pkey.
SELECT collection_id, purged_at FROM nearsim.collection
WHERE collection_id = ANY(CAST(%(collection_ids)s AS integer[])) AND purged_at IS NOT NULL

-- name: list_live_states
-- For each of the collections, the time of its last purge and its live generations. Relies on collection_pkey, on
-- profile_name_key and on generation_one_live.
SELECT collection_id, purged_at, ARRAY(
    SELECT generation_id FROM nearsim.profile JOIN nearsim.generation USING (profile_id)
    WHERE profile.collection_id = collection.collection_id AND state = 'live' ORDER BY generation_id)
FROM nearsim.collection WHERE collection_id = ANY(CAST(%(collection_ids)s AS integer[]))

-- name: create_profile
-- Create a profile; no row if a profile with this name exists.
INSERT INTO nearsim.profile (collection_id, name) VALUES (%(collection_id)s, %(name)s)
ON CONFLICT DO NOTHING RETURNING profile_id

-- name: list_profile_names
-- Names of a collection's profiles, with or without a generation. Relies on profile_name_key.
SELECT name FROM nearsim.profile WHERE collection_id = %(collection_id)s

-- name: find_default_profile
-- The profile that is used if the caller names none. Relies on profile_name_key.
SELECT nearsim.default_profile(%(collection_id)s)

-- name: delete_profile
-- Delete a profile. Relies on profile_name_key.
DELETE FROM nearsim.profile WHERE collection_id = %(collection_id)s AND name = %(name)s
