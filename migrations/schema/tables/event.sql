-- What happened, in the order in which it was committed: event_id is drawn under a lock that is held until the
-- transaction is over, so whoever has seen an event has seen all that have a smaller number. There are no foreign keys:
-- an event outlives what it is about.
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
    pruned boolean NOT NULL DEFAULT false,
    kind text NOT NULL,
    other_ids bigint[],
    other_survivor_ids bigint[],
    CONSTRAINT event_kind_known CHECK (kind IN ('pair_found', 'pair_gone', 'cluster_formed', 'cluster_gone',
        'cluster_merged', 'cluster_split', 'cluster_renamed', 'cluster_changed', 'survivor_changed', 'generation_live',
        'generation_gone')),
    CONSTRAINT event_of_pair_whole CHECK
        (pruned OR (kind IN ('pair_found', 'pair_gone')) = (left_id IS NOT NULL AND right_id IS NOT NULL)),
    CONSTRAINT event_pair_ordered CHECK (left_id < right_id),
    CONSTRAINT event_of_cluster_whole CHECK (pruned OR
        (kind IN ('pair_found', 'pair_gone', 'generation_live', 'generation_gone')) = (cluster_id IS NULL))
);
CREATE INDEX event_pruned ON nearsim.event (profile_id, kind) WHERE pruned;

COMMENT ON TABLE nearsim.event IS
    'What happened to pairs, clusters and their survivors, in the order in which it was committed; kept for some days';
COMMENT ON COLUMN nearsim.event.event_id IS 'The order; there are gaps, but nothing is ever added before what is there';
COMMENT ON COLUMN nearsim.event.left_id IS 'doc_id of the left document of a pair';
COMMENT ON COLUMN nearsim.event.right_id IS 'doc_id of the right document of a pair; of twins the one that is not the head';
COMMENT ON COLUMN nearsim.event.similarity IS 'Similarity of a pair that was found; 1 for a twin and its head';
COMMENT ON COLUMN nearsim.event.cluster_id IS 'The cluster; of one that was split or is gone, what it was called';
COMMENT ON COLUMN nearsim.event.survivor_id IS 'doc_id of the document that survives in the cluster, or did';
COMMENT ON COLUMN nearsim.event.at IS 'When it was about to be committed';
COMMENT ON COLUMN nearsim.event.collection_id IS 'The collection';
COMMENT ON COLUMN nearsim.event.profile_id IS 'The profile';
COMMENT ON COLUMN nearsim.event.generation_id IS 'The generation that answered for the profile';
COMMENT ON COLUMN nearsim.event.pruned IS 'Whether this event and all before it of its kind and profile were removed';
COMMENT ON COLUMN nearsim.event.kind IS
    'pair_found, pair_gone, cluster_formed, cluster_gone, cluster_merged, cluster_split, cluster_renamed, cluster_changed, survivor_changed, generation_live or generation_gone';
COMMENT ON COLUMN nearsim.event.other_ids IS
    'Clusters: those that were merged, those that a cluster fell into, or what it was called before';
COMMENT ON COLUMN nearsim.event.other_survivor_ids IS 'The survivors of those clusters, in the same order';
