-- The id with which a slice of a table begins, after so many rows from an id on, or from the first. Relies on its key.
SELECT CAST(source.{id} AS text) FROM {relation} AS source WHERE {from_here}
ORDER BY source.{id} LIMIT 1 OFFSET %(amount)s
