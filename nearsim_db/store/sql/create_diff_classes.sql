-- Documents sorted by their heads in two generations, those that are in no pair and have no twin in either left out: a
-- class is all documents with the same two heads, a head being NULL where a document is alone there. And the heads of
-- each generation with their documents and classes. Reads twins and ends of pairs from indexes, no signature.
CREATE TEMP TABLE diff_class ON COMMIT DROP AS
WITH live AS (
    SELECT doc_id, min(head_id) AS head_id FROM (
        SELECT doc_id, head_id FROM {live_signature} WHERE head_id <> doc_id
        UNION ALL SELECT head_id, head_id FROM {live_signature} WHERE head_id <> doc_id
        UNION ALL SELECT left_id, left_id FROM {live_pair}
        UNION ALL SELECT right_id, right_id FROM {live_pair}
    ) AS tied
    GROUP BY doc_id
), new AS (
    SELECT doc_id, min(head_id) AS head_id FROM (
        SELECT doc_id, head_id FROM {new_signature} WHERE head_id <> doc_id
        UNION ALL SELECT head_id, head_id FROM {new_signature} WHERE head_id <> doc_id
        UNION ALL SELECT left_id, left_id FROM {new_pair}
        UNION ALL SELECT right_id, right_id FROM {new_pair}
    ) AS tied
    GROUP BY doc_id
)
SELECT live.head_id AS live_head, new.head_id AS new_head, count(*) AS documents, min(doc_id) AS doc_id,
    max(doc_id) AS last_id
FROM live FULL JOIN new USING (doc_id)
GROUP BY 1, 2;
CREATE INDEX ON diff_class (live_head, doc_id);
CREATE INDEX ON diff_class (new_head, doc_id);
CREATE INDEX ON diff_class (live_head, new_head);
CREATE TEMP TABLE diff_live ON COMMIT DROP AS
SELECT live_head AS head_id, CAST(sum(documents) AS bigint) AS documents, count(*) AS classes
FROM diff_class WHERE live_head IS NOT NULL GROUP BY 1;
CREATE UNIQUE INDEX ON diff_live (head_id);
CREATE TEMP TABLE diff_new ON COMMIT DROP AS
SELECT new_head AS head_id, CAST(sum(documents) AS bigint) AS documents, count(*) AS classes
FROM diff_class WHERE new_head IS NOT NULL GROUP BY 1;
CREATE UNIQUE INDEX ON diff_new (head_id);
ANALYZE diff_class;
ANALYZE diff_live;
ANALYZE diff_new
