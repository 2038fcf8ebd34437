-- Clusters of two or more existing documents. If the survivor was deleted after clusters were last updated, the first member
-- takes its place. Relies on the partition's index on cluster_id and on document_pkey.
CREATE VIEW nearsim.clusters WITH (security_invoker = true) AS
SELECT live.collection, live.profile, live.collection_id, live.generation_id, found.*
FROM nearsim.live_generations AS live
CROSS JOIN LATERAL (
    SELECT cluster.cluster_id, cluster.documents, survivor.doc_id AS survivor_id,
        survivor.external_id AS survivor_external_id, survivor.title AS survivor_title,
        survivor.source AS survivor_source, cluster.first_published_at, cluster.last_published_at, cluster.sources,
        cluster.members
    FROM (
        SELECT member.cluster_id, count(*) AS documents,
            coalesce(max(document.doc_id) FILTER (WHERE member.is_survivor),
                CASE WHEN live.recipe #>> '{cluster,keep}' <> 'none' THEN min(document.doc_id) END) AS survivor_id,
            min(document.published_at) AS first_published_at, max(document.published_at) AS last_published_at,
            count(DISTINCT document.source) AS sources,
            array_agg(document.external_id ORDER BY member.doc_id) AS members
        FROM nearsim.cluster_member AS member
        JOIN nearsim.document ON document.doc_id = member.doc_id AND document.collection_id = live.collection_id
        WHERE member.generation_id = live.generation_id
        GROUP BY member.cluster_id
        HAVING count(*) > 1
    ) AS cluster
    LEFT JOIN nearsim.document AS survivor ON survivor.doc_id = cluster.survivor_id
    ORDER BY CAST(NULL AS integer)
) AS found;

COMMENT ON VIEW nearsim.clusters IS
    'Clusters of documents that are connected by pairs, each with its size, the document to keep, and the first and last publication';
COMMENT ON COLUMN nearsim.clusters.generation_id IS 'The live generation of the profile';
COMMENT ON COLUMN nearsim.clusters.cluster_id IS 'Number of the cluster: its smallest doc_id';
COMMENT ON COLUMN nearsim.clusters.documents IS 'Number of documents in the cluster';
COMMENT ON COLUMN nearsim.clusters.first_published_at IS 'When the first of its documents was published; NULL if no date is known';
COMMENT ON COLUMN nearsim.clusters.last_published_at IS 'When the last of its documents was published; NULL if no date is known';
COMMENT ON COLUMN nearsim.clusters.sources IS 'Number of distinct sources of its documents';
COMMENT ON COLUMN nearsim.clusters.members IS 'external_ids of its documents, in the order of doc_id';
