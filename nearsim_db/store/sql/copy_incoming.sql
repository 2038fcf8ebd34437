-- A batch on its way in.
COPY incoming (line, external_id, title, body, source, url, published_at, attributes, vector) FROM STDIN
