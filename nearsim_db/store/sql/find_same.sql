-- Whether a document is stored under its external_id exactly as given; given without a vector, whatever it has.
-- Relies on document_external_id_key.
SELECT EXISTS (
    SELECT FROM nearsim.document
    WHERE collection_id = %(collection_id)s AND external_id = %(external_id)s
        AND (title, body, source, url, published_at, attributes) IS NOT DISTINCT FROM (
            CAST(%(title)s AS text), CAST(%(body)s AS text), CAST(%(source)s AS text), CAST(%(url)s AS text),
            CAST(%(published_at)s AS timestamptz), CAST(%(attributes)s AS jsonb))
        AND vector IS NOT DISTINCT FROM coalesce(CAST(%(vector)s AS real[]), vector))
