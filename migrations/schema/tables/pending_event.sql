-- The table is unlogged: rows exist only within a transaction, so a crash loses nothing.
CREATE UNLOGGED TABLE nearsim_index.pending_event (
    pending_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pending_event_pkey PRIMARY KEY,
    generation_id integer NOT NULL,
    kind text NOT NULL,
    collection_id integer,
    profile_id integer,
    left_ids bigint[],
    right_ids bigint[],
    similarities double precision[],
    doc_ids bigint[],
    cluster_ids bigint[],
    survive boolean[],
    CONSTRAINT pending_event_kind_known CHECK (kind IN ('pairs_before', 'pairs_after', 'members', 'live', 'not_live'))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE nearsim_index.pending_event
    ALTER COLUMN left_ids SET STORAGE EXTERNAL, ALTER COLUMN right_ids SET STORAGE EXTERNAL,
    ALTER COLUMN similarities SET STORAGE EXTERNAL, ALTER COLUMN doc_ids SET STORAGE EXTERNAL,
    ALTER COLUMN cluster_ids SET STORAGE EXTERNAL, ALTER COLUMN survive SET STORAGE EXTERNAL;

COMMENT ON TABLE nearsim_index.pending_event IS
    'Changes of the running transaction, one row per statement; converted into events and deleted at commit';
COMMENT ON COLUMN nearsim_index.pending_event.pending_id IS 'Number that ascends in the order of the statements';
COMMENT ON COLUMN nearsim_index.pending_event.generation_id IS 'The changed generation';
COMMENT ON COLUMN nearsim_index.pending_event.kind IS
    'pairs_before, pairs_after (pairs before and after the statement), members (cluster members before the statement), live (promoted) or not_live (retired or deleted)';
COMMENT ON COLUMN nearsim_index.pending_event.collection_id IS 'Collection of a generation that was promoted or retired';
COMMENT ON COLUMN nearsim_index.pending_event.profile_id IS 'Profile of a generation that was promoted or retired';
COMMENT ON COLUMN nearsim_index.pending_event.left_ids IS 'Left documents of pairs, and heads of twins';
COMMENT ON COLUMN nearsim_index.pending_event.right_ids IS 'Right documents of these pairs, and twins';
COMMENT ON COLUMN nearsim_index.pending_event.similarities IS 'Similarities of these pairs; NULL for twins';
COMMENT ON COLUMN nearsim_index.pending_event.doc_ids IS
    'Documents that joined, left or changed a cluster, or whose survivor flag changed';
COMMENT ON COLUMN nearsim_index.pending_event.cluster_ids IS 'Clusters of these documents before the statement; NULL for a document in no cluster';
COMMENT ON COLUMN nearsim_index.pending_event.survive IS 'Whether each was the document to keep in that cluster; NULL for a document in no cluster';
