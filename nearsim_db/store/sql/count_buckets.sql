-- How large buckets are, and how many links the bucket limit leaves out (a pair counts once a bucket).
SELECT count(*), coalesce(max(members), 0), count(*) FILTER (WHERE members > %(bucket_limit)s AND %(bucket_limit)s > 0),
    coalesce(sum((members - %(bucket_limit)s) * (members - %(bucket_limit)s - 1) / 2)
        FILTER (WHERE members > %(bucket_limit)s AND %(bucket_limit)s > 0), 0)
FROM (SELECT count(*) AS members FROM {band} GROUP BY bucket_hash) AS bucket
