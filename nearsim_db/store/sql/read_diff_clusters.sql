-- Some clusters of one generation whose documents are in several of the other, chosen by a hash of their numbers, each with
-- the largest of these: numbers, sizes, how many documents they share, and survivors. After create_diff_overlaps; relies on its
-- indexes and on those of the leaves on (cluster_id, is_survivor, doc_id).
WITH whole AS MATERIALIZED (
    SELECT {whole} AS cluster_id, sum(documents) AS documents, count({part}) AS parts
    FROM diff_overlap
    WHERE {whole} IS NOT NULL
    GROUP BY 1
    HAVING count({part}) > 1
    ORDER BY hashint8extended({whole}, 0), 1
    LIMIT %(amount)s
)
SELECT whole.cluster_id, whole.documents, whole.parts, kept.doc_id, named.external_id, named.title,
    part.cluster_id, size.documents, part.documents, part_kept.doc_id, part_named.external_id, part_named.title
FROM whole
CROSS JOIN LATERAL (
    SELECT {part} AS cluster_id, documents FROM diff_overlap
    WHERE {whole} = whole.cluster_id AND {part} IS NOT NULL
    ORDER BY documents DESC, 1
    LIMIT %(parts)s
) AS part
CROSS JOIN LATERAL (
    SELECT sum(documents) AS documents FROM diff_overlap WHERE {part} = part.cluster_id
) AS size
LEFT JOIN {whole_member} AS kept ON kept.cluster_id = whole.cluster_id AND kept.is_survivor
LEFT JOIN {part_member} AS part_kept ON part_kept.cluster_id = part.cluster_id AND part_kept.is_survivor
LEFT JOIN nearsim.document AS named ON named.doc_id = kept.doc_id
LEFT JOIN nearsim.document AS part_named ON part_named.doc_id = part_kept.doc_id
ORDER BY hashint8extended(whole.cluster_id, 0), whole.cluster_id, part.documents DESC, part.cluster_id
