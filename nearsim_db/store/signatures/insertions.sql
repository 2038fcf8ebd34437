-- name: delete_settled_insertions
-- Delete the checked insertions of a collection, or of all, that no check needs any more: the present revision of the
-- document is signed, and every answer that check_insert may still use takes the document into account. After a restore from
-- a dump, transaction numbers come from another server, so a number that this server has not reached yet does not keep a
-- row. Relies on probe_age, document_external_id_key and the keys of the signatures.
DELETE FROM nearsim_index.checked_insertion AS checked
WHERE checked.collection_id = coalesce(CAST(%(collection_id)s AS integer), checked.collection_id)
    AND NOT EXISTS (
        SELECT FROM nearsim.document
        JOIN nearsim.profile USING (collection_id) JOIN nearsim.generation USING (profile_id)
        WHERE document.collection_id = checked.collection_id AND document.external_id = checked.external_id
            AND generation.state = 'live'
            AND coalesce(document.published_at, document.created_at)
                >= coalesce(clock_timestamp() - nearsim.retention_of(generation.recipe), '-infinity')
            AND NOT EXISTS (
                SELECT FROM nearsim_index.signed
                WHERE signed.generation_id = generation.generation_id AND signed.doc_id = document.doc_id
                    AND signed.revision = document.revision))
    AND (CAST(checked.transaction_id AS xid8) >= pg_snapshot_xmax(pg_current_snapshot()) OR NOT EXISTS (
        SELECT FROM nearsim.probe
        WHERE probe.collection_id = checked.collection_id AND probe.purpose = 'insert' AND probe.deadline > now()
            AND pg_visible_in_snapshot(CAST(checked.transaction_id AS xid8), CAST(probe.snapshot AS pg_snapshot)) IS NOT TRUE))

-- name: purge_insertions
-- Delete the checked insertions of these documents, and all insertions without an external id, because their bucket hashes
-- may come from a purged text. Relies on checked_insertion_generation.
DELETE FROM nearsim_index.checked_insertion
WHERE collection_id = %(collection_id)s
    AND (external_id IS NULL OR external_id = ANY(CAST(%(external_ids)s AS text[])))
