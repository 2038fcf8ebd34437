-- Documents whose sketch has not the size that the recipe gives it. Reads the whole table.
SELECT doc_id FROM {signature} WHERE octet_length(sketch) <> %(bytes)s ORDER BY doc_id
