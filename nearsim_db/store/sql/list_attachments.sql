-- Which collections follow a table, of all or of one. The name is NULL where the table is gone.
SELECT collection_id, collection.name, CAST(CAST(relation AS oid) AS bigint),
    (SELECT quote_ident(nspname) || '.' || quote_ident(relname)
    FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
    WHERE pg_class.oid = relation),
    id_column, text_column, title_column, source_column, url_column, published_at_column,
    attached_at, wanted_at, swept_at, sweep_seconds, unusable, detaching, trouble, troubled_at
FROM nearsim.attachment JOIN nearsim.collection USING (collection_id)
WHERE collection_id = %(collection_id)s OR %(collection_id)s IS NULL
ORDER BY collection.name
