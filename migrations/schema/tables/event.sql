-- Events in commit order. A transaction draws event_ids under a lock that it holds until it ends, so a session that sees an
-- event sees all events with smaller numbers. There are no foreign keys, because an event outlives its objects.
CREATE TABLE nearsim.event (
    event_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT event_pkey PRIMARY KEY,
    left_id bigint,
    right_id bigint,
    similarity double precision,
    cluster_id bigint,
    survivor_id bigint,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    collection_id integer NOT NULL,
    profile_id integer NOT NULL,
    generation_id integer NOT NULL,
    verified boolean,
    pruned boolean CONSTRAINT event_pruned_or_null CHECK (pruned),
    kind text NOT NULL,
    other_ids bigint[],
    other_survivor_ids bigint[],
    CONSTRAINT event_kind_known CHECK (kind IN ('pair_found', 'pair_gone', 'cluster_formed', 'cluster_gone',
        'cluster_merged', 'cluster_split', 'cluster_renamed', 'cluster_changed', 'survivor_changed', 'generation_live',
        'generation_gone')),
    CONSTRAINT event_of_pair_whole CHECK
        (pruned IS NOT NULL OR (kind IN ('pair_found', 'pair_gone')) = (left_id IS NOT NULL AND right_id IS NOT NULL)),
    CONSTRAINT event_pair_ordered CHECK (left_id < right_id),
    CONSTRAINT event_similarity_marked CHECK ((similarity IS NULL) = (verified IS NULL)),
    CONSTRAINT event_of_cluster_whole CHECK (pruned IS NOT NULL OR
        (kind IN ('pair_found', 'pair_gone', 'generation_live', 'generation_gone')) = (cluster_id IS NULL))
);
CREATE INDEX event_pruned ON nearsim.event (profile_id, kind) WHERE pruned;

COMMENT ON TABLE nearsim.event IS
    'Changes of pairs, of clusters and of the documents to keep, in commit order; old events are deleted';
COMMENT ON COLUMN nearsim.event.event_id IS
    'Position in commit order; there are gaps, but later events always have larger numbers';
COMMENT ON COLUMN nearsim.event.left_id IS 'doc_id of the left document of a pair';
COMMENT ON COLUMN nearsim.event.right_id IS
    'doc_id of the right document of a pair; for twins, of the document that is not the head';
COMMENT ON COLUMN nearsim.event.similarity IS 'Similarity of a new pair; an estimate if verified is false, 1 for a twin and its head; NULL for other events';
COMMENT ON COLUMN nearsim.event.cluster_id IS 'Number of the cluster; its former number if it was split or dissolved';
COMMENT ON COLUMN nearsim.event.survivor_id IS 'doc_id of the document to keep in the cluster, or that it kept if it was split or dissolved';
COMMENT ON COLUMN nearsim.event.at IS 'Time shortly before commit';
COMMENT ON COLUMN nearsim.event.collection_id IS 'The collection';
COMMENT ON COLUMN nearsim.event.profile_id IS 'The profile';
COMMENT ON COLUMN nearsim.event.generation_id IS 'The generation that was live';
COMMENT ON COLUMN nearsim.event.verified IS
    'Whether the similarity was computed from the features, which is also true for documents with the same features; false if it is an estimate from the sketches (match.verify of the recipe decides); NULL for other events';
COMMENT ON COLUMN nearsim.event.pruned IS
    'True if this event and all earlier events of its kind and profile were deleted, and this row only marks the place; NULL, which takes no space, for other events';
COMMENT ON COLUMN nearsim.event.kind IS
    'pair_found, pair_gone, cluster_formed, cluster_gone, cluster_merged, cluster_split, cluster_renamed, cluster_changed, survivor_changed, generation_live or generation_gone';
COMMENT ON COLUMN nearsim.event.other_ids IS
    'Numbers of other clusters: those that were merged into this one, those that it was split into, or its own former number';
COMMENT ON COLUMN nearsim.event.other_survivor_ids IS 'doc_ids of the documents to keep in those clusters, in the same order';
