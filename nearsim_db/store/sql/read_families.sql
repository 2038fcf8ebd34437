-- Those of some documents that are signed, and all that share a head or a digest with them. Relies on the key and on the
-- indexes on feature_digest and head_id.
WITH own AS MATERIALIZED (
    SELECT doc_id, head_id, feature_digest FROM {signature} WHERE doc_id = ANY(CAST(%(doc_ids)s AS bigint[]))
)
SELECT doc_id FROM own
UNION
SELECT doc_id FROM {signature} WHERE doc_id = ANY(ARRAY(SELECT head_id FROM own))
UNION
SELECT doc_id FROM {signature} WHERE head_id <> doc_id AND head_id = ANY(CAST(%(doc_ids)s AS bigint[]))
UNION
SELECT doc_id FROM {signature} WHERE head_id <> doc_id AND head_id = ANY(ARRAY(SELECT head_id FROM own))
UNION
SELECT doc_id FROM {signature} WHERE feature_digest = ANY(ARRAY(SELECT feature_digest FROM own))
