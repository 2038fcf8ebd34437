-- All members of all clusters: survivors apart from the others, packed as eight bytes each.
SELECT cluster_id, is_survivor, string_agg(int8send(doc_id), '') FROM {cluster_member}
GROUP BY cluster_id, is_survivor
