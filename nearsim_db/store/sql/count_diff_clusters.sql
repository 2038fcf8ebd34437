-- What became of clusters. Matched are those whose documents, as far as they are in clusters, are in one cluster of the other
-- generation and are all that it has of any. After create_diff_overlaps; reads the survivors of both.
WITH live AS (
    SELECT live_cluster AS cluster_id, sum(documents) AS documents, count(new_cluster) AS parts, min(new_cluster) AS part
    FROM diff_overlap WHERE live_cluster IS NOT NULL GROUP BY 1
), new AS (
    SELECT new_cluster AS cluster_id, sum(documents) AS documents, count(live_cluster) AS parts, min(live_cluster) AS part
    FROM diff_overlap WHERE new_cluster IS NOT NULL GROUP BY 1
), matched AS (
    SELECT live.cluster_id AS live_cluster, new.cluster_id AS new_cluster, live.documents > shared.documents AS lost,
        new.documents > shared.documents AS gained
    FROM live
    JOIN new ON new.cluster_id = live.part AND new.part = live.cluster_id
    JOIN diff_overlap AS shared ON shared.live_cluster = live.cluster_id AND shared.new_cluster = new.cluster_id
    WHERE live.parts = 1 AND new.parts = 1
), kept AS (
    SELECT count(*) FILTER (WHERE NOT lost AND NOT gained) AS same, count(*) FILTER (WHERE gained AND NOT lost) AS grown,
        count(*) FILTER (WHERE lost AND NOT gained) AS shrunk, count(*) FILTER (WHERE lost AND gained) AS changed
    FROM matched
), survivors AS (
    SELECT count(*) AS changed
    FROM matched
    JOIN {live_member} AS before ON before.cluster_id = matched.live_cluster AND before.is_survivor
    JOIN {new_member} AS after ON after.cluster_id = matched.new_cluster AND after.is_survivor
    WHERE before.doc_id <> after.doc_id
)
SELECT (SELECT count(*) FROM live), (SELECT count(*) FROM new), kept.same, kept.grown, kept.shrunk, kept.changed,
    (SELECT count(*) FROM new WHERE parts = 0), (SELECT count(*) FROM live WHERE parts = 0),
    (SELECT count(*) FROM new WHERE parts > 1), (SELECT count(*) FROM live WHERE parts > 1), survivors.changed
FROM kept CROSS JOIN survivors
