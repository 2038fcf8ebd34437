-- Documents in the order of the keep policy, the best first, packed as eight bytes each; ties go to the earlier and then
-- the smaller doc_id. Relies on document_pkey.
SELECT coalesce(string_agg(int8send(asked.doc_id), '' ORDER BY
    CASE WHEN %(policy)s = 'source' THEN array_position(CAST(%(sources)s AS text[]), document.source) END NULLS LAST,
    CASE WHEN %(policy)s = 'longest'
        THEN coalesce(length(document.title), 0) + coalesce(length(document.body), document.body_length, 0) END DESC NULLS LAST,
    CASE WHEN %(policy)s = 'latest' THEN coalesce(document.published_at, document.created_at) END DESC NULLS LAST,
    coalesce(document.published_at, document.created_at), asked.doc_id), '')
FROM unnest(CAST(%(doc_ids)s AS bigint[])) AS asked (doc_id) LEFT JOIN nearsim.document USING (doc_id)
