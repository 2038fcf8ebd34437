-- Every document once per live profile of its collection, with its state. Relies on document_pkey,
-- document_external_id_key, document_collection_doc and the partitions' keys.
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
WHERE NOT EXISTS (SELECT FROM nearsim.live_generations AS live WHERE live.collection_id = collection.collection_id);

COMMENT ON VIEW nearsim.documents IS
    'Every document once per live profile of its collection, with its state in the index';
COMMENT ON COLUMN nearsim.documents.collection IS 'Name of the collection';
COMMENT ON COLUMN nearsim.documents.profile IS 'Name of the profile; NULL if the collection has no live profile';
COMMENT ON COLUMN nearsim.documents.collection_id IS 'Number of the collection';
COMMENT ON COLUMN nearsim.documents.generation_id IS 'The live generation of the profile; NULL if it has none';
COMMENT ON COLUMN nearsim.documents.doc_id IS 'Number of the document';
COMMENT ON COLUMN nearsim.documents.external_id IS 'The owner''s id of the document, unique in its collection';
COMMENT ON COLUMN nearsim.documents.title IS 'Title; NULL if it has none';
COMMENT ON COLUMN nearsim.documents.source IS 'Source; NULL if it has none';
COMMENT ON COLUMN nearsim.documents.url IS 'URL; NULL if it has none';
COMMENT ON COLUMN nearsim.documents.published_at IS 'When it was published; NULL if it has none';
COMMENT ON COLUMN nearsim.documents.created_at IS 'When it was first stored';
COMMENT ON COLUMN nearsim.documents.updated_at IS 'When it was last changed';
COMMENT ON COLUMN nearsim.documents.revision IS 'Increases with every change of the document';
COMMENT ON COLUMN nearsim.documents.state IS
    'indexed; twin (same features as head_id); no features (empty or too short, matches nothing); outdated (an older revision is indexed); waiting (not indexed yet); outside window (expired by [retain] age); not indexed (the collection has no live profile)';
COMMENT ON COLUMN nearsim.documents.feature_count IS 'Number of distinct features; NULL if it is not in the index';
COMMENT ON COLUMN nearsim.documents.head_id IS
    'The first document with the same features, which alone is compared; often the document itself; NULL if it has no features or is not in the index';
COMMENT ON COLUMN nearsim.documents.cluster_id IS 'Its cluster; NULL if it is in none';
COMMENT ON COLUMN nearsim.documents.is_survivor IS
    'Whether it is the document of its cluster to keep; NULL if it is in no cluster';
