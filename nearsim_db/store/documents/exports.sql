-- name: read_export
-- Documents of a collection in order of doc_id, each with its cluster and the external id of the document to keep in it.
-- That is the survivor or, if the survivor was deleted after clusters were last updated, the first existing member. A
-- document is a duplicate if the document to keep is another one. Only requested columns are detoasted. Relies on
-- document_collection_doc and on the leaf's indexes on doc_id and (cluster_id, is_survivor, doc_id).
SELECT document.doc_id, document.external_id, document.title,
    CASE WHEN 'text' = ANY(requested.columns) THEN {body} END,
    document.source, document.url, document.published_at,
    CASE WHEN 'vector' = ANY(requested.columns) THEN document.vector END,
    CASE WHEN 'attributes' = ANY(requested.columns) THEN document.attributes END,
    document.revision, document.created_at, document.updated_at, member.cluster_id, survivor.external_id
    {marks}
FROM nearsim.document
CROSS JOIN (SELECT CAST(%(columns)s AS text[]) AS columns) AS requested
{source_text}
LEFT JOIN {cluster_member} AS member ON member.doc_id = document.doc_id
LEFT JOIN LATERAL (
    SELECT chosen.doc_id FROM {cluster_member} AS chosen JOIN nearsim.document AS there USING (doc_id)
    WHERE chosen.cluster_id = member.cluster_id AND chosen.is_survivor LIMIT 1
) AS kept ON true
LEFT JOIN LATERAL (
    SELECT first.doc_id FROM {cluster_member} AS first JOIN nearsim.document AS there USING (doc_id)
    WHERE kept.doc_id IS NULL AND NOT %(keeps_none)s AND first.cluster_id = member.cluster_id AND NOT first.is_survivor
    ORDER BY first.doc_id LIMIT 1
) AS successor ON true
LEFT JOIN nearsim.document AS survivor
    ON survivor.doc_id = CASE WHEN kept.doc_id IS NULL THEN successor.doc_id ELSE kept.doc_id END
{joined_marks}
WHERE document.collection_id = %(collection_id)s
    AND (CAST(%(duplicates)s AS boolean) IS NULL
        OR CAST(%(duplicates)s AS boolean)
            = coalesce(survivor.doc_id <> document.doc_id, %(keeps_none)s AND member.cluster_id IS NOT NULL))
ORDER BY document.doc_id

-- name: marks_of_export
-- Columns of read_export: the number of documents in the cluster, and the similarity to the survivor, which is NULL for the
-- survivor and for documents that are not a pair with it.
, coalesce(cluster_size.documents, 1),
CASE WHEN survivor.doc_id = document.doc_id THEN NULL WHEN own.head_id = other.head_id THEN 1 ELSE pair.similarity END

-- name: join_marks
-- Part of read_export: the sizes of all clusters, counted once, and the stored pair of a document and its survivor. Relies
-- on the leaf's keys of signatures and pairs.
LEFT JOIN (
    SELECT counted.cluster_id, count(*) AS documents
    FROM {cluster_member} AS counted JOIN nearsim.document AS there USING (doc_id)
    GROUP BY counted.cluster_id
) AS cluster_size ON cluster_size.cluster_id = member.cluster_id
LEFT JOIN {signature} AS own ON own.doc_id = document.doc_id
LEFT JOIN {signature} AS other ON other.doc_id = survivor.doc_id
LEFT JOIN {similar_pair} AS pair ON pair.left_id = least(own.head_id, other.head_id)
    AND pair.right_id = greatest(own.head_id, other.head_id)

-- name: join_source_text
-- Part of read_export: the text of `document` in its attached table. Relies on the key of that table, which is probed once
-- for each document (LIMIT prevents a join of all rows).
CROSS JOIN LATERAL (SELECT document.external_id, document.body_digest) AS attached
{with_source_row}

-- name: count_export
-- Number of a collection's documents, and number of cluster members that are not survivors. Relies on
-- document_collection_doc; reads all members.
SELECT (SELECT count(*) FROM nearsim.document WHERE collection_id = %(collection_id)s),
    (SELECT count(*) FROM {cluster_member} AS cluster_member WHERE NOT is_survivor)

-- name: count_unindexed
-- Number of a collection's documents that have not expired but have no signature for their present revision. Relies on
-- document_collection_doc and on the leaf's key.
SELECT count(*) FROM nearsim.document
WHERE collection_id = %(collection_id)s
    AND {is_within_age}
    AND NOT EXISTS (
        SELECT FROM {signature} AS signature
        WHERE signature.doc_id = document.doc_id AND signature.revision = document.revision)

-- name: read_attribute_kinds
-- Keys of a collection's attributes with the JSON types of their values. A number counts as integer if it has no fraction
-- and fits into 64 bits, otherwise as number. Reads all documents of the collection; relies on document_collection_doc.
SELECT pair.key, array_agg(DISTINCT CASE
    WHEN jsonb_typeof(pair.value) <> 'number' THEN jsonb_typeof(pair.value)
    WHEN scale(CAST(pair.value AS numeric)) = 0
        AND CAST(pair.value AS numeric) BETWEEN -9223372036854775808 AND 9223372036854775807 THEN 'integer'
    ELSE 'number' END)
FROM nearsim.document CROSS JOIN LATERAL jsonb_each(attributes) AS pair
WHERE collection_id = %(collection_id)s
GROUP BY pair.key ORDER BY pair.key COLLATE "C"
