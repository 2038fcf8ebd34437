-- Every document once for each live profile of its collection, with how it stands there. Relies on document_pkey,
-- document_external_id_key, document_collection_doc and the leaves' keys.
CREATE VIEW nearsim.documents WITH (security_invoker = true) AS
SELECT live.collection, live.profile, live.collection_id, live.generation_id, found.doc_id, found.external_id,
    found.title, found.source, found.url, found.published_at, found.created_at, found.updated_at, found.revision,
    found.state, found.feature_count, found.head_id, found.cluster_id, found.is_survivor
FROM nearsim.live_generations AS live
CROSS JOIN LATERAL (
    SELECT document.doc_id, document.external_id, document.title, document.source, document.url,
        document.published_at, document.created_at, document.updated_at, document.revision,
        CASE
            WHEN signature.doc_id IS NULL AND coalesce(document.published_at, document.created_at) < now() - live.retained
                THEN 'outside window'
            WHEN signature.doc_id IS NULL THEN 'waiting'
            WHEN signature.revision <> document.revision THEN 'outdated'
            WHEN signature.feature_count = 0 THEN 'no features'
            WHEN signature.head_id <> signature.doc_id THEN 'twin'
            ELSE 'indexed'
        END AS state,
        signature.feature_count, signature.head_id, member.cluster_id, member.is_survivor
    FROM nearsim.document
    LEFT JOIN nearsim.signature
        ON signature.generation_id = live.generation_id AND signature.doc_id = document.doc_id
    LEFT JOIN nearsim.cluster_member AS member
        ON member.generation_id = live.generation_id AND member.doc_id = document.doc_id
    WHERE document.collection_id = live.collection_id
    ORDER BY CAST(NULL AS integer)
) AS found
UNION ALL
SELECT collection.name, NULL, collection.collection_id, NULL, document.doc_id, document.external_id,
    document.title, document.source, document.url, document.published_at, document.created_at, document.updated_at,
    document.revision, 'not indexed', NULL, NULL, NULL, NULL
FROM nearsim.collection
JOIN nearsim.document USING (collection_id)
WHERE NOT collection.temporary
    AND NOT EXISTS (SELECT FROM nearsim.live_generations AS live WHERE live.collection_id = collection.collection_id);

COMMENT ON VIEW nearsim.documents IS
    'Every document once for each live profile of its collection, with how it stands in the index';
COMMENT ON COLUMN nearsim.documents.collection IS 'Name of the collection';
COMMENT ON COLUMN nearsim.documents.profile IS 'Name of the profile; NULL where the collection has none that is live';
COMMENT ON COLUMN nearsim.documents.collection_id IS 'Number of the collection';
COMMENT ON COLUMN nearsim.documents.generation_id IS 'The generation that answers for the profile';
COMMENT ON COLUMN nearsim.documents.doc_id IS 'The index''s own number of the document';
COMMENT ON COLUMN nearsim.documents.external_id IS 'The owner''s name of the document, unique in its collection';
COMMENT ON COLUMN nearsim.documents.title IS 'Its title';
COMMENT ON COLUMN nearsim.documents.source IS 'Where it comes from';
COMMENT ON COLUMN nearsim.documents.url IS 'Its address';
COMMENT ON COLUMN nearsim.documents.published_at IS 'When it was published';
COMMENT ON COLUMN nearsim.documents.created_at IS 'When it was first stored';
COMMENT ON COLUMN nearsim.documents.updated_at IS 'When it was last changed';
COMMENT ON COLUMN nearsim.documents.revision IS 'Grows with every change of the document';
COMMENT ON COLUMN nearsim.documents.state IS
    'indexed; twin (its features are those of head_id); no features (empty or too short: like nothing); outdated (the index holds an older revision); waiting (not in the index yet); outside window (too old for it); not indexed (the collection has no live profile)';
COMMENT ON COLUMN nearsim.documents.feature_count IS 'How many distinct features the index holds of it';
COMMENT ON COLUMN nearsim.documents.head_id IS 'The first of the documents with the same features, which alone is compared; often itself';
COMMENT ON COLUMN nearsim.documents.cluster_id IS 'Its cluster as last linked; NULL for a document in none';
COMMENT ON COLUMN nearsim.documents.is_survivor IS 'Whether it is the one of its cluster to keep, as last linked; NULL outside of clusters';
