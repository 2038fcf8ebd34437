-- What ties documents together: verified pairs, and twins with their head.
SELECT left_id, right_id FROM {similar_pair}
UNION ALL
SELECT head_id, doc_id FROM {signature} WHERE head_id <> doc_id
