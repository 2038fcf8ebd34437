-- Rows of a table that cannot be followed, as their id is NULL, empty or too long. Reads it from end to end, without texts.
SELECT count(*) FROM {relation} AS source
WHERE source.{id} IS NULL OR octet_length(CAST(source.{id} AS text)) NOT BETWEEN 1 AND 1024
