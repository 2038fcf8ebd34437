-- Documents of clusters, each with the document of its cluster that was published first. A query makes one pass over the
-- members and their documents and one sort, and reads only the columns that it needs. A condition on cluster_id is evaluated
-- before the sort, through the partition's index on (cluster_id, is_survivor, doc_id). Infinite dates count as missing,
-- because no delay can be computed from them.
CREATE VIEW nearsim.first_publications WITH (security_invoker = true) AS
SELECT live.collection, live.profile, live.collection_id, live.generation_id, found.*
FROM nearsim.live_generations AS live
CROSS JOIN LATERAL (
    SELECT story.cluster_id, story.doc_id, story.external_id, story.title, story.source, story.url, story.published_at,
        story.first_id, story.first_external_id, story.first_title, story.first_source, story.first_published_at,
        story.published_at - story.first_published_at AS delay,
        coalesce(story.published_at > story.first_published_at AND story.source <> story.first_source, false)
            AS first_elsewhere
    FROM (
        SELECT member.cluster_id, document.doc_id, document.external_id, document.title, document.source, document.url,
            dated.published_at, first_value(document.doc_id) OVER publications AS first_id,
            first_value(document.external_id) OVER publications AS first_external_id,
            first_value(document.title) OVER publications AS first_title,
            first_value(document.source) OVER publications AS first_source,
            first_value(dated.published_at) OVER publications AS first_published_at
        FROM nearsim.cluster_member AS member
        JOIN nearsim.document ON document.doc_id = member.doc_id AND document.collection_id = live.collection_id
        CROSS JOIN LATERAL (
            SELECT CASE WHEN isfinite(document.published_at) THEN document.published_at END AS published_at
        ) AS dated
        WHERE member.generation_id = live.generation_id
        WINDOW publications AS (PARTITION BY member.cluster_id ORDER BY dated.published_at, document.doc_id)
    ) AS story
    WHERE story.first_published_at IS NOT NULL AND story.doc_id <> story.first_id
) AS found;

COMMENT ON VIEW nearsim.first_publications IS
    'Who published first: every document of a cluster except the one that was published first, together with that document, whichever of them is kept. If several have the earliest published_at, the one with the smallest doc_id is the first. A document without a date is never the first, and clusters without any date are left out';
COMMENT ON COLUMN nearsim.first_publications.generation_id IS 'The live generation of the profile';
COMMENT ON COLUMN nearsim.first_publications.cluster_id IS 'Number of the cluster of both documents';
COMMENT ON COLUMN nearsim.first_publications.doc_id IS 'doc_id of the later document';
COMMENT ON COLUMN nearsim.first_publications.external_id IS 'external_id of the later document';
COMMENT ON COLUMN nearsim.first_publications.title IS 'Title of the later document; NULL if it has none';
COMMENT ON COLUMN nearsim.first_publications.source IS 'Source of the later document; NULL if it has none';
COMMENT ON COLUMN nearsim.first_publications.url IS 'URL of the later document; NULL if it has none';
COMMENT ON COLUMN nearsim.first_publications.published_at IS
    'When the later document was published; NULL if it has no date or an infinite one';
COMMENT ON COLUMN nearsim.first_publications.first_id IS 'doc_id of the document published first';
COMMENT ON COLUMN nearsim.first_publications.first_external_id IS 'external_id of the document published first';
COMMENT ON COLUMN nearsim.first_publications.first_title IS 'Title of the document published first; NULL if it has none';
COMMENT ON COLUMN nearsim.first_publications.first_source IS 'Source of the document published first; NULL if it has none';
COMMENT ON COLUMN nearsim.first_publications.first_published_at IS 'When the first document was published';
COMMENT ON COLUMN nearsim.first_publications.delay IS
    'Time from the first publication to this one; 0 if both have the same time, NULL if this document has no date';
COMMENT ON COLUMN nearsim.first_publications.first_elsewhere IS
    'Whether another source published it first: the delay is above 0, and both sources are known and differ';
