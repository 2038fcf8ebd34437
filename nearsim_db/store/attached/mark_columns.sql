-- name: find_due_marks
-- Attached tables whose mark column is due for a pass: it was never written, or the last pass began ten seconds ago and at
-- least ten times its duration ago. Reads the whole table, which has a row for each attached collection.
SELECT collection_id FROM nearsim_index.attachment
WHERE mark_column IS NOT NULL AND NOT detaching
    AND (collection_id = %(collection_id)s OR CAST(%(collection_id)s AS integer) IS NULL)
    AND (marked_at < clock_timestamp() - greatest(interval '10 seconds', 10 * make_interval(secs => mark_seconds))
        OR marked_at IS NULL OR CAST(%(at_once)s AS boolean))
ORDER BY collection_id

-- name: find_foreign_update_code
-- The object through which an untrusted role could run code with the user's rights when rows of a table are updated; NULL if
-- there is none. Reads only the catalog.
SELECT nearsim.foreign_code(CAST(CAST(%(relation)s AS oid) AS regclass), true)

-- name: write_marks
-- Write, into the rows of a slice, the id of the document to keep instead of each duplicate, and NULL into all other rows.
-- Rows that another transaction has locked are skipped, so that the application never waits for a lock in a circle. Returns
-- the number of rows in the slice, of rows whose mark differs, and of rows that were written. Relies on the key of the
-- attached table, on document_external_id_key and on the keys of cluster_member (LIMIT prevents joins of all rows).
WITH live AS MATERIALIZED (
    SELECT part.value, part.collection_id, live.generation_id
    FROM unnest(CAST(%(collection_ids)s AS integer[]), CAST(%(values)s AS text[])) AS part (collection_id, value)
    JOIN nearsim.live_generations AS live ON live.collection_id = part.collection_id
    WHERE live.profile = 'default' OR NOT EXISTS (
        SELECT FROM nearsim.profile AS other
        WHERE other.collection_id = live.collection_id AND other.name <> live.profile)
), slice AS MATERIALIZED (
    SELECT source.{id} AS id, CAST(source.{id} AS text) COLLATE "C" AS external_id, {value} AS value,
        CAST(source.{mark} AS text) COLLATE "C" AS mark
    FROM {relation} AS source WHERE {from_here}
    ORDER BY source.{id} LIMIT {amount}
), differing AS MATERIALIZED (
    SELECT slice.id, kept.external_id AS duplicate_of
    FROM slice
    LEFT JOIN live USING (value)
    LEFT JOIN LATERAL (
        SELECT kept.external_id
        FROM nearsim.document
        JOIN nearsim.cluster_member AS member
            ON member.generation_id = live.generation_id AND member.doc_id = document.doc_id AND NOT member.is_survivor
        JOIN nearsim.cluster_member AS survivor
            ON survivor.generation_id = live.generation_id AND survivor.cluster_id = member.cluster_id AND survivor.is_survivor
        JOIN nearsim.document AS kept ON kept.doc_id = survivor.doc_id
        WHERE document.collection_id = live.collection_id AND document.external_id = slice.external_id
        LIMIT 1
    ) AS kept ON true
    WHERE slice.mark IS DISTINCT FROM kept.external_id
), free AS MATERIALIZED (
    SELECT source.{id} AS id, differing.duplicate_of
    FROM differing JOIN {relation} AS source ON source.{id} = differing.id
    FOR NO KEY UPDATE OF source SKIP LOCKED
), written AS (
    UPDATE {relation} AS source SET {mark} = CAST(free.duplicate_of AS {mark_type})
    FROM free WHERE source.{id} = free.id
    RETURNING 1
)
SELECT (SELECT count(*) FROM slice), (SELECT count(*) FROM differing), (SELECT count(*) FROM written)

-- name: record_marks
-- Record a finished pass over a mark column with the moment at which it began, or why it failed. Relies on attachment_pkey.
UPDATE nearsim_index.attachment SET marked_at = %(began)s, mark_trouble = %(trouble)s,
    mark_seconds = extract(epoch FROM clock_timestamp() - %(began)s)
WHERE collection_id = %(collection_id)s
