-- name: insert
INSERT INTO nearsim.document (collection_id, external_id, title, body, vector, source, published_at)
VALUES (%(collection_id)s, %(external_id)s, %(title)s, %(body)s, CAST(%(vector)s AS real[]), %(source)s,
    CAST(%(published_at)s AS timestamptz))
ON CONFLICT DO NOTHING RETURNING doc_id

-- name: upsert
INSERT INTO nearsim.document (collection_id, external_id, title, body, vector, source, published_at)
VALUES (%(collection_id)s, %(external_id)s, %(title)s, %(body)s, CAST(%(vector)s AS real[]), %(source)s,
    CAST(%(published_at)s AS timestamptz))
ON CONFLICT (collection_id, external_id) DO UPDATE SET title = excluded.title, body = excluded.body,
    vector = excluded.vector, source = excluded.source, published_at = excluded.published_at
RETURNING doc_id

-- name: update_body
UPDATE nearsim.document SET body = %(value)s
WHERE collection_id = %(collection_id)s AND external_id = %(external_id)s RETURNING doc_id

-- name: update_source
UPDATE nearsim.document SET source = %(value)s
WHERE collection_id = %(collection_id)s AND external_id = %(external_id)s RETURNING doc_id

-- name: update_published_at
UPDATE nearsim.document SET published_at = CAST(%(value)s AS timestamptz)
WHERE collection_id = %(collection_id)s AND external_id = %(external_id)s RETURNING doc_id

-- name: update_external_id
UPDATE nearsim.document SET external_id = %(value)s
WHERE collection_id = %(collection_id)s AND external_id = %(external_id)s RETURNING doc_id

-- name: update_collection_id
UPDATE nearsim.document SET collection_id = %(value)s
WHERE collection_id = %(collection_id)s AND external_id = %(external_id)s RETURNING doc_id

-- name: delete
DELETE FROM nearsim.document
WHERE collection_id = %(collection_id)s AND external_id = %(external_id)s RETURNING doc_id

-- name: delete_many
DELETE FROM nearsim.document WHERE collection_id = %(collection_id)s AND body LIKE 'ii%%' RETURNING doc_id

-- name: lock
SELECT doc_id FROM nearsim.document
WHERE collection_id = %(collection_id)s AND external_id = %(external_id)s FOR UPDATE

-- name: merge
MERGE INTO nearsim.document AS stored
USING (VALUES (CAST(%(collection_id)s AS integer), %(external_id)s)) AS given (collection_id, external_id)
ON stored.collection_id = given.collection_id AND stored.external_id = given.external_id
WHEN MATCHED THEN UPDATE SET title = %(title)s, body = %(body)s, vector = CAST(%(vector)s AS real[]),
    source = %(source)s, published_at = CAST(%(published_at)s AS timestamptz)
WHEN NOT MATCHED THEN INSERT (collection_id, external_id, title, body, vector, source, published_at)
    VALUES (%(collection_id)s, %(external_id)s, %(title)s, %(body)s, CAST(%(vector)s AS real[]), %(source)s,
        CAST(%(published_at)s AS timestamptz))

-- name: merge_delete
MERGE INTO nearsim.document AS stored
USING (VALUES (CAST(%(collection_id)s AS integer), %(external_id)s)) AS given (collection_id, external_id)
ON stored.collection_id = given.collection_id AND stored.external_id = given.external_id
WHEN MATCHED THEN DELETE

-- name: delete_named
DELETE FROM nearsim.document
WHERE collection_id = %(collection_id)s AND external_id = ANY(%(names)s) RETURNING doc_id

-- name: copy
COPY nearsim.document (collection_id, external_id, title, body, vector, source, published_at) FROM STDIN

-- name: find_named
SELECT external_id, doc_id FROM nearsim.document
WHERE collection_id = %(collection_id)s AND external_id = ANY(%(names)s)

-- name: choose_two
SELECT min(doc_id), max(doc_id)
FROM (SELECT doc_id FROM nearsim.document WHERE collection_id = %(collection_id)s ORDER BY random() LIMIT 2) AS chosen
HAVING count(*) = 2

-- name: pin
SELECT collection_id FROM nearsim.pin_pair_by_doc_id(
    CAST(%(left)s AS bigint), CAST(%(right)s AS bigint), 'a reason', 'soak')

-- name: veto
SELECT collection_id FROM nearsim.veto_pair_by_doc_id(
    CAST(%(left)s AS bigint), CAST(%(right)s AS bigint), 'a reason', 'soak')

-- name: undo
SELECT collection_id FROM nearsim.undo_verdict_by_doc_id(
    CAST(%(left)s AS bigint), CAST(%(right)s AS bigint), 'a reason', 'soak')

-- name: upsert_story
INSERT INTO public.story (id, headline, body, source, day)
VALUES (%(id)s, %(headline)s, %(body)s, %(source)s, CAST(%(day)s AS timestamptz))
ON CONFLICT (id) DO UPDATE
SET headline = excluded.headline, body = excluded.body, source = excluded.source, day = excluded.day
RETURNING id

-- name: delete_story
DELETE FROM public.story WHERE id = %(id)s RETURNING id
