-- Have a collection follow a table; one that does already takes other columns of it from now on.
INSERT INTO nearsim.attachment (collection_id, relation, id_column, text_column, title_column, source_column, url_column,
    published_at_column)
VALUES (%(collection_id)s, CAST(%(relation)s AS oid), %(id)s, %(text)s, %(title)s, %(source)s, %(url)s, %(published_at)s)
ON CONFLICT (collection_id) DO UPDATE SET
    text_column = excluded.text_column, title_column = excluded.title_column, source_column = excluded.source_column,
    url_column = excluded.url_column, published_at_column = excluded.published_at_column,
    wanted_at = clock_timestamp(), trouble = NULL, troubled_at = NULL
