-- Every document once for each live profile of its collection, with its state. One SELECT joins all tables, so that a query by
-- external_id uses indexes (document_external_id_key, then the partitions' keys), while a query of the whole view uses hash
-- joins. A subquery that is not pulled up (OFFSET 0) makes the generation a parameter of the scans of partitions, as the
-- comment in live_generations explains.
CREATE VIEW nearsim.documents WITH (security_invoker = true) AS
SELECT collection.name AS collection, profile.name AS profile, collection.collection_id, generation.generation_id,
    document.doc_id, document.external_id, document.title, document.source, document.url, document.published_at,
    document.created_at, document.updated_at, document.revision,
    CASE
        WHEN generation.generation_id IS NULL THEN 'not indexed'
        WHEN signature.doc_id IS NULL AND coalesce(document.published_at, document.created_at)
            < now() - nearsim.retention_of(generation.recipe) THEN 'outside window'
        WHEN signature.doc_id IS NULL THEN 'waiting'
        WHEN signature.revision <> document.revision THEN 'outdated'
        WHEN signature.feature_count = 0 THEN 'no features'
        WHEN signature.head_id <> signature.doc_id THEN 'twin'
        ELSE 'indexed'
    END AS state,
    signature.feature_count, signature.head_id, member.cluster_id, member.is_survivor
FROM nearsim.collection
LEFT JOIN (nearsim.generation JOIN nearsim.profile USING (profile_id))
    ON profile.collection_id = collection.collection_id AND generation.state = 'live'
JOIN nearsim.document ON document.collection_id = collection.collection_id
LEFT JOIN (
    LATERAL (SELECT generation.generation_id OFFSET 0) AS live
    CROSS JOIN LATERAL (
        SELECT signature.*, coalesce(live.generation_id, 0) AS parameter FROM nearsim_index.signed AS signature
        WHERE signature.generation_id = live.generation_id
    ) AS signature
) ON signature.doc_id = document.doc_id
LEFT JOIN (
    LATERAL (SELECT generation.generation_id OFFSET 0) AS its
    CROSS JOIN LATERAL (
        SELECT member.*, coalesce(its.generation_id, 0) AS parameter FROM nearsim.cluster_member AS member
        WHERE member.generation_id = its.generation_id
    ) AS member
) ON member.doc_id = document.doc_id
WHERE (signature.parameter < 0 AND signature.parameter IS NULL) IS NOT TRUE
    AND (member.parameter < 0 AND member.parameter IS NULL) IS NOT TRUE;

COMMENT ON VIEW nearsim.documents IS
    'Every document once per live profile of its collection, with its state in the index';
COMMENT ON COLUMN nearsim.documents.profile IS 'Name of the profile; NULL if the collection has no live profile';
COMMENT ON COLUMN nearsim.documents.generation_id IS 'The live generation of the profile; NULL if the collection has no live profile';
COMMENT ON COLUMN nearsim.documents.doc_id IS 'Number of the document';
COMMENT ON COLUMN nearsim.documents.external_id IS 'The owner''s id of the document, unique in its collection';
COMMENT ON COLUMN nearsim.documents.title IS 'Title; NULL if it has none';
COMMENT ON COLUMN nearsim.documents.source IS 'Source; NULL if it has none';
COMMENT ON COLUMN nearsim.documents.url IS 'URL; NULL if it has none';
COMMENT ON COLUMN nearsim.documents.published_at IS 'When it was published; NULL if it has no date';
COMMENT ON COLUMN nearsim.documents.created_at IS 'When it was first stored';
COMMENT ON COLUMN nearsim.documents.updated_at IS 'When it was last changed';
COMMENT ON COLUMN nearsim.documents.revision IS 'Increases with every change of the document';
COMMENT ON COLUMN nearsim.documents.state IS
    'indexed; twin (it has the same features as the document head_id); no features (its text is empty or too short, so it matches nothing); outdated (an older revision is indexed); waiting (it is not indexed yet); outside window (it is older than [retain] age); not indexed (the collection has no live profile)';
COMMENT ON COLUMN nearsim.documents.feature_count IS 'Number of distinct features; NULL if it is not in the index';
COMMENT ON COLUMN nearsim.documents.head_id IS
    'The first document with the same features, often the document itself; only this document is compared with others; NULL if it has no features or is not in the index';
COMMENT ON COLUMN nearsim.documents.cluster_id IS 'Number of its cluster; NULL if it is in no cluster';
COMMENT ON COLUMN nearsim.documents.is_survivor IS
    'Whether it is the document to keep in its cluster; NULL if it is in no cluster';
