-- All candidates of a profile, by a self-join of its band rows
-- The same as SELECT * FROM nearsim.candidates('demo', 'default') ORDER BY left_id, right_id
WITH live AS MATERIALIZED (
    SELECT generation_id, recipe, min_shared_bands, recipe #>> '{match,amplification}' AS amplification,
        coalesce(nullif(bucket_limit, 0), 9223372036854775807) AS bucket_limit
    FROM nearsim.live_generations WHERE collection = 'demo' AND profile = 'default'  -- use your own
), member AS MATERIALIZED (  -- of buckets with two or more, numbered by doc_id: the first bucket_limit are anchors
    SELECT bucket_hash, band_no, doc_id, place FROM (
        SELECT bucket_hash, band_no, doc_id,
            row_number() OVER in_bucket AS place, lead(doc_id) OVER in_bucket AS next_id
        FROM nearsim.band WHERE generation_id = (SELECT generation_id FROM live)
        WINDOW in_bucket AS (PARTITION BY bucket_hash ORDER BY doc_id)
    ) AS numbered
    WHERE place > 1 OR next_id IS NOT NULL
), linked AS (  -- by buckets in which one of the two is an anchor
    SELECT anchor.doc_id AS left_id, other.doc_id AS right_id, count(*) AS shared_bands,
        array_agg(anchor.band_no) FILTER (WHERE (SELECT amplification IS NOT NULL FROM live)) AS bands
    FROM member AS anchor JOIN member AS other USING (bucket_hash)
    WHERE anchor.doc_id < other.doc_id AND anchor.place <= (SELECT bucket_limit FROM live)
    GROUP BY anchor.doc_id, other.doc_id
), beyond AS (  -- the buckets in which a document is no anchor: linked pairs share these, too
    SELECT doc_id, array_agg(bucket_hash) AS buckets FROM member
    WHERE place > (SELECT bucket_limit FROM live) GROUP BY doc_id
)
SELECT left_id, right_id, CAST(shared.bands AS smallint) AS shared_bands
FROM live CROSS JOIN linked
LEFT JOIN beyond AS l ON l.doc_id = left_id
LEFT JOIN beyond AS r ON r.doc_id = right_id
LEFT JOIN LATERAL (
    SELECT array_agg(CAST((bucket >> 56) & 255 AS smallint)) AS bands
    FROM unnest(l.buckets) AS bucket WHERE bucket = ANY (r.buckets)
    HAVING l.buckets && r.buckets
) AS more ON true
CROSS JOIN LATERAL (SELECT linked.shared_bands + coalesce(cardinality(more.bands), 0) AS bands) AS shared
WHERE CASE WHEN amplification IS NULL THEN shared.bands >= min_shared_bands
    ELSE nearsim.is_candidate(recipe, linked.bands || more.bands) END
ORDER BY left_id, right_id;
