-- Part of write_followed: the rows of some ids, which are asked for one by one (the LIMIT forbids to join otherwise). Relies
-- on the table's key. Two ids may be two ways of writing one.
SELECT DISTINCT ON (found.external_id) found.*, CAST(0 AS bigint) AS place
FROM unnest(CAST(%(ids)s AS text[])) AS followed (external_id)
CROSS JOIN LATERAL (SELECT {fields} FROM {relation} AS source WHERE source.{id} = {key} LIMIT 1) AS found
ORDER BY found.external_id
