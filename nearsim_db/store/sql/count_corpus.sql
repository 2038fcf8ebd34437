-- The documents of a collection: all, those with a title, a source, a date; sources; the first and the last date; and the
-- verdicts that stand. Reads all documents of the collection; relies on verdict_collection.
SELECT count(*), count(title), count(source), count(published_at), count(DISTINCT source),
    to_char(min(published_at) FILTER (WHERE isfinite(published_at)) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'),
    to_char(max(published_at) FILTER (WHERE isfinite(published_at)) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'),
    (SELECT count(*) FROM nearsim.verdict
        WHERE collection_id = %(collection_id)s AND verdict = 'pinned' AND undone_at IS NULL),
    (SELECT count(*) FROM nearsim.verdict
        WHERE collection_id = %(collection_id)s AND verdict = 'vetoed' AND undone_at IS NULL)
FROM nearsim.document WHERE collection_id = %(collection_id)s
