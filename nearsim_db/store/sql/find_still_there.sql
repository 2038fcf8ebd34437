-- Which of some ids have a row in the table that the collection follows. Relies on its key.
SELECT followed.external_id FROM unnest(CAST(%(ids)s AS text[])) AS followed (external_id)
WHERE EXISTS (SELECT FROM {relation} AS source WHERE source.{id} = {key} OFFSET 0)
