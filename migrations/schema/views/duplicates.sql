-- Every document of a cluster except the document to keep, together with the document to keep. That is the survivor or, if the
-- survivor was deleted or moved after clusters were last updated, the first existing member. The tables are joined as in the
-- view documents. Outer joins, and a condition that does not turn them into inner joins, leave the planner few join orders.
-- The survivor is looked up by keys, however many documents the planner expects, through the partition's index on
-- (cluster_id, is_survivor, doc_id).
CREATE VIEW nearsim.duplicates WITH (security_invoker = true) AS
SELECT live.collection, live.profile, live.collection_id, live.generation_id, member.cluster_id, document.doc_id,
    document.external_id, document.title, document.source, document.url, document.published_at,
    survivor.doc_id AS survivor_id, survivor.external_id AS survivor_external_id, survivor.title AS survivor_title,
    survivor.source AS survivor_source, survivor.published_at AS survivor_published_at,
    survivor.external_id AS copy_of
FROM nearsim.live_generations AS live
JOIN nearsim.document ON document.collection_id = live.collection_id
LEFT JOIN (
    LATERAL (SELECT live.generation_id OFFSET 0) AS its
    CROSS JOIN LATERAL (
        SELECT member.*, coalesce(its.generation_id, 0) AS parameter FROM nearsim.cluster_member AS member
        WHERE member.generation_id = its.generation_id
    ) AS member
) ON member.doc_id = document.doc_id
LEFT JOIN LATERAL (
    SELECT named.doc_id, named.external_id, named.title, named.source, named.published_at
    FROM (SELECT) AS one
    LEFT JOIN LATERAL (
        SELECT chosen.doc_id FROM nearsim.cluster_member AS chosen
        CROSS JOIN LATERAL (SELECT FROM nearsim.document AS own
            WHERE own.doc_id = chosen.doc_id AND own.collection_id = live.collection_id OFFSET 0) AS there
        WHERE chosen.generation_id = live.generation_id AND chosen.cluster_id = member.cluster_id AND chosen.is_survivor
        LIMIT 1
    ) AS kept ON true
    LEFT JOIN LATERAL (
        SELECT first.doc_id FROM nearsim.cluster_member AS first
        CROSS JOIN LATERAL (SELECT FROM nearsim.document AS own
            WHERE own.doc_id = first.doc_id AND own.collection_id = live.collection_id OFFSET 0) AS there
        WHERE kept.doc_id IS NULL AND live.recipe #>> '{cluster,keep}' <> 'none'
            AND first.generation_id = live.generation_id
            AND first.cluster_id = member.cluster_id AND NOT first.is_survivor
        ORDER BY first.doc_id LIMIT 1
    ) AS successor ON true
    -- This is CASE because, under row-level security, PostgreSQL does not use the index for the result of coalesce().
    JOIN nearsim.document AS named
        ON named.doc_id = CASE WHEN kept.doc_id IS NULL THEN successor.doc_id ELSE kept.doc_id END
    OFFSET 0
) AS survivor ON true
WHERE coalesce(survivor.doc_id <> document.doc_id,
        member.cluster_id IS NOT NULL AND live.recipe #>> '{cluster,keep}' = 'none')
    AND (member.parameter < 0 AND member.parameter IS NULL) IS NOT TRUE;

COMMENT ON VIEW nearsim.duplicates IS 'Duplicates: every document of a cluster except the document to keep, together with the document to keep';
COMMENT ON COLUMN nearsim.duplicates.generation_id IS 'The live generation of the profile';
COMMENT ON COLUMN nearsim.duplicates.cluster_id IS 'Number of the cluster of both documents';
COMMENT ON COLUMN nearsim.duplicates.doc_id IS 'doc_id of the duplicate';
COMMENT ON COLUMN nearsim.duplicates.external_id IS 'external_id of the duplicate';
COMMENT ON COLUMN nearsim.duplicates.title IS 'Title of the duplicate; NULL if it has none';
COMMENT ON COLUMN nearsim.duplicates.source IS 'Source of the duplicate; NULL if it has none';
COMMENT ON COLUMN nearsim.duplicates.url IS 'URL of the duplicate; NULL if it has none';
COMMENT ON COLUMN nearsim.duplicates.published_at IS 'When the duplicate was published; NULL if it has no date';
COMMENT ON COLUMN nearsim.duplicates.survivor_published_at IS 'When the document to keep was published; NULL if it has no date';
COMMENT ON COLUMN nearsim.duplicates.copy_of IS 'external_id of the document to keep, equal to survivor_external_id; NULL if the recipe keeps none';
