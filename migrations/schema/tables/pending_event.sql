-- It is empty for everybody but a transaction that is changing something; so a crash has nothing to lose here.
CREATE UNLOGGED TABLE nearsim.pending_event (
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
ALTER TABLE nearsim.pending_event
    ALTER COLUMN left_ids SET STORAGE EXTERNAL, ALTER COLUMN right_ids SET STORAGE EXTERNAL,
    ALTER COLUMN similarities SET STORAGE EXTERNAL, ALTER COLUMN doc_ids SET STORAGE EXTERNAL,
    ALTER COLUMN cluster_ids SET STORAGE EXTERNAL, ALTER COLUMN survive SET STORAGE EXTERNAL;

COMMENT ON TABLE nearsim.pending_event IS
    'What the transaction at hand has changed, a row a statement; made into events when it commits, and gone by then';
COMMENT ON COLUMN nearsim.pending_event.pending_id IS 'The order of the statements';
COMMENT ON COLUMN nearsim.pending_event.generation_id IS 'The generation that was changed';
COMMENT ON COLUMN nearsim.pending_event.kind IS
    'pairs_before, pairs_after, members (their state before), live or not_live (promoted or retired)';
COMMENT ON COLUMN nearsim.pending_event.collection_id IS 'The collection of a generation that became live, or no longer is';
COMMENT ON COLUMN nearsim.pending_event.profile_id IS 'The profile of such a generation';
COMMENT ON COLUMN nearsim.pending_event.left_ids IS 'The left documents of pairs, and the heads of twins';
COMMENT ON COLUMN nearsim.pending_event.right_ids IS 'The right documents, and the twins';
COMMENT ON COLUMN nearsim.pending_event.similarities IS 'The similarities of these pairs';
COMMENT ON COLUMN nearsim.pending_event.doc_ids IS 'Documents that joined, left or changed a cluster, or survive otherwise';
COMMENT ON COLUMN nearsim.pending_event.cluster_ids IS 'The clusters that these were in; NULL for none';
COMMENT ON COLUMN nearsim.pending_event.survive IS 'Whether they survived there; NULL where they were in none';
