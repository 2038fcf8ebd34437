-- Part of write_followed: so many rows of a table from an id on, in the order of their ids. Relies on its key.
SELECT {fields}, row_number() OVER (ORDER BY source.{id}) AS place
FROM {relation} AS source WHERE source.{id} >= CAST(%(start)s AS {id_type})
ORDER BY source.{id} LIMIT %(amount)s
