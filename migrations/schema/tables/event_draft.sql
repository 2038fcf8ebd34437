-- It is empty for everybody but a transaction that is changing something; so a crash has nothing to lose here.
CREATE UNLOGGED TABLE nearsim.event_draft (
    draft_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT event_draft_pkey PRIMARY KEY,
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
    CONSTRAINT event_draft_kind_known CHECK (kind IN ('pairs_gone', 'pairs_come', 'members', 'live', 'not_live'))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE nearsim.event_draft
    ALTER COLUMN left_ids SET STORAGE EXTERNAL, ALTER COLUMN right_ids SET STORAGE EXTERNAL,
    ALTER COLUMN similarities SET STORAGE EXTERNAL, ALTER COLUMN doc_ids SET STORAGE EXTERNAL,
    ALTER COLUMN cluster_ids SET STORAGE EXTERNAL, ALTER COLUMN survive SET STORAGE EXTERNAL;

COMMENT ON TABLE nearsim.event_draft IS
    'What the transaction at hand has changed, a row a statement; made into events when it commits, and gone by then';
COMMENT ON COLUMN nearsim.event_draft.draft_id IS 'The order of the statements';
COMMENT ON COLUMN nearsim.event_draft.generation_id IS 'The generation that was changed';
COMMENT ON COLUMN nearsim.event_draft.kind IS
    'pairs_gone, pairs_come, members (as they were before), live or not_live (the generation was made so)';
COMMENT ON COLUMN nearsim.event_draft.collection_id IS 'The collection of a generation that became live, or no longer is';
COMMENT ON COLUMN nearsim.event_draft.profile_id IS 'The profile of such a generation';
COMMENT ON COLUMN nearsim.event_draft.left_ids IS 'The left documents of pairs, and the heads of twins';
COMMENT ON COLUMN nearsim.event_draft.right_ids IS 'The right documents, and the twins';
COMMENT ON COLUMN nearsim.event_draft.similarities IS 'The similarities of these pairs';
COMMENT ON COLUMN nearsim.event_draft.doc_ids IS 'Documents that joined, left or changed a cluster, or survive otherwise';
COMMENT ON COLUMN nearsim.event_draft.cluster_ids IS 'The clusters that these were in; NULL for none';
COMMENT ON COLUMN nearsim.event_draft.survive IS 'Whether they survived there; NULL where they were in none';
