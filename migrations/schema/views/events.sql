-- Queries read it in the order of event_id, from any number on, by event_pkey. Names are looked up by primary keys, and are
-- NULL for deleted objects.
CREATE VIEW nearsim.events WITH (security_invoker = true) AS
SELECT event.event_id, event.at, event.kind, collection.name AS collection, profile.name AS profile,
    l.external_id AS left_external_id, r.external_id AS right_external_id, event.similarity,
    event.cluster_id, survivor.external_id AS survivor_external_id, event.left_id, event.right_id, event.survivor_id,
    event.other_ids, event.other_survivor_ids, event.collection_id, event.profile_id, event.generation_id,
    event.pruned IS NOT NULL AS pruned, event.verified
FROM nearsim.event
LEFT JOIN nearsim.collection ON collection.collection_id = event.collection_id
LEFT JOIN nearsim.profile ON profile.profile_id = event.profile_id
LEFT JOIN nearsim.document AS l ON l.doc_id = event.left_id AND l.collection_id = event.collection_id
LEFT JOIN nearsim.document AS r ON r.doc_id = event.right_id AND r.collection_id = event.collection_id
LEFT JOIN nearsim.document AS survivor
    ON survivor.doc_id = event.survivor_id AND survivor.collection_id = event.collection_id;

COMMENT ON VIEW nearsim.events IS
    'Changes of pairs, of clusters and of the documents to keep, in the order of event_id; new events always have larger numbers';
COMMENT ON COLUMN nearsim.events.event_id IS 'Position in commit order; there are gaps';
COMMENT ON COLUMN nearsim.events.at IS 'Time shortly before commit';
COMMENT ON COLUMN nearsim.events.kind IS
    'pair_found, pair_gone, cluster_formed, cluster_gone, cluster_merged, cluster_split, cluster_renamed, cluster_changed, survivor_changed, generation_live or generation_gone';
COMMENT ON COLUMN nearsim.events.collection IS 'Name of the collection; NULL if it was deleted';
COMMENT ON COLUMN nearsim.events.profile IS 'Name of the profile; NULL if it was deleted';
COMMENT ON COLUMN nearsim.events.left_external_id IS
    'external_id of the left document of a pair; NULL if it was deleted';
COMMENT ON COLUMN nearsim.events.right_external_id IS
    'external_id of the right document of a pair; NULL if it was deleted';
COMMENT ON COLUMN nearsim.events.similarity IS
    'Similarity of a new pair; an estimate if verified is false, 1 for documents with the same features; NULL for other events';
COMMENT ON COLUMN nearsim.events.cluster_id IS 'Number of the cluster; its former number if it was split or dissolved; NULL for other events';
COMMENT ON COLUMN nearsim.events.survivor_external_id IS 'external_id of the document to keep; NULL if it was deleted';
COMMENT ON COLUMN nearsim.events.left_id IS 'doc_id of the left document; NULL for other events';
COMMENT ON COLUMN nearsim.events.right_id IS 'doc_id of the right document; NULL for other events';
COMMENT ON COLUMN nearsim.events.survivor_id IS
    'doc_id of the document to keep in the cluster, or that it kept if it was split or dissolved; NULL for other events';
COMMENT ON COLUMN nearsim.events.other_ids IS
    'Numbers of the clusters that were merged into this one or that it was split into, or its own former number; NULL for other events';
COMMENT ON COLUMN nearsim.events.other_survivor_ids IS 'doc_ids of the documents to keep in those clusters, in the same order; NULL for other events';
COMMENT ON COLUMN nearsim.events.generation_id IS 'The generation that was live';
COMMENT ON COLUMN nearsim.events.pruned IS
    'Whether this event and all earlier events of its kind and profile were deleted, so that only the number of this event remains';
COMMENT ON COLUMN nearsim.events.verified IS
    'Whether the similarity was computed from the features, which is also true for documents with the same features; false if it is an estimate from the sketches (match.verify of the recipe decides); NULL for other events';
