"""Work under leases, with retries; anchors' work in slices; clusters found by their id; windows and purges.

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

from nearsim_db.store.schema.migration_locks import build_indexes

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# All of this can be repeated; it is committed before indexes are built.
COLUMNS = """
ALTER TABLE nearsim.work
    ADD COLUMN IF NOT EXISTS queued_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN IF NOT EXISTS due_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN IF NOT EXISTS lease_id integer,
    ADD COLUMN IF NOT EXISTS again boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS attempts smallint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS reached bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS error text,
    ADD COLUMN IF NOT EXISTS set_aside_at timestamptz,
    SET (fillfactor = 60, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
"""

INDEXES = {
    "work_not_tried": """
CREATE INDEX CONCURRENTLY work_not_tried ON nearsim.work (generation_id, stage, doc_id) WHERE attempts = 0
""",
    "work_tried_before": """
CREATE INDEX CONCURRENTLY work_tried_before ON nearsim.work (generation_id, stage, attempts, doc_id)
    WHERE attempts > 0 AND set_aside_at IS NULL
""",
    "work_set_aside": """
CREATE INDEX CONCURRENTLY work_set_aside ON nearsim.work (generation_id, stage, doc_id) WHERE set_aside_at IS NOT NULL
""",
    "document_age": """
CREATE INDEX CONCURRENTLY document_age ON nearsim.document (collection_id, (coalesce(published_at, created_at)))
""",
}

LEAVES = sa.text("""
SELECT format('%s_cluster_id_is_survivor_doc_id_key', relname),
    format('CREATE UNIQUE INDEX CONCURRENTLY %1$s_cluster_id_is_survivor_doc_id_key
        ON nearsim.%1$s (cluster_id, is_survivor, doc_id)', relname)
FROM pg_class WHERE relnamespace = CAST('nearsim' AS regnamespace) AND relname ~ '^cluster_member_[0-9]+$'
""")

UPGRADE = """
CREATE TABLE nearsim.lease (
    lease_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    worker text NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT now(),
    beat_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE nearsim.lease IS
    'Processes at work, each holding an advisory lock as long as it lives; their work is free again when they are gone';

ALTER TABLE nearsim.work
    DROP CONSTRAINT work_stage_known,
    ADD CONSTRAINT work_stage_known CHECK (stage IN ('sign', 'search', 'anchor', 'link', 'compare')) NOT VALID;
COMMENT ON TABLE nearsim.work IS
    'What a generation has still to sign, search or link: who is at it, since when, and what went wrong before';

-- Nothing orders changes, so they need no key; without one a COPY into document takes a tenth less.
ALTER TABLE nearsim.change DROP COLUMN change_id;
ALTER TABLE nearsim.change REPLICA IDENTITY FULL,
    SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- What an update moves out of a collection is noted row by row; in all others the rows after it say everything.
CREATE OR REPLACE FUNCTION nearsim.keep_revision() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.revision := nextval('nearsim.document_revision');
    NEW.updated_at := now();
    IF (OLD.collection_id, OLD.doc_id) IS DISTINCT FROM (NEW.collection_id, NEW.doc_id) THEN
        INSERT INTO nearsim.change (collection_id, doc_id) VALUES (OLD.collection_id, OLD.doc_id);
    END IF;
    RETURN NEW;
END
$$;
DROP TRIGGER document_note_updated ON nearsim.document;
DROP FUNCTION nearsim.note_updated();
ALTER FUNCTION nearsim.note_inserted() RENAME TO note_written;
CREATE TRIGGER document_note_updated AFTER UPDATE ON nearsim.document
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT EXECUTE FUNCTION nearsim.note_written();

-- 0 stands for a whole generation, and for what is not in the index.
ALTER TABLE nearsim.document ADD CONSTRAINT document_doc_id_positive CHECK (doc_id > 0) NOT VALID;

ALTER TABLE nearsim.collection ADD COLUMN purged_at timestamptz;
ALTER TABLE nearsim.generation ADD COLUMN expired_through timestamptz;

-- A generation that was begun after the indexes were built has little in its own tables.
DO $$
DECLARE
    leaf text;
    key text;
BEGIN
    FOR leaf IN
        SELECT relname FROM pg_class
        WHERE relnamespace = CAST('nearsim' AS regnamespace) AND relname ~ '^cluster_member_[0-9]+$'
    LOOP
        key := leaf || '_cluster_id_is_survivor_doc_id_key';
        IF to_regclass('nearsim.' || key) IS NULL THEN
            EXECUTE format('ALTER TABLE nearsim.%I ADD UNIQUE (cluster_id, is_survivor, doc_id)', leaf);
        ELSE
            EXECUTE format('ALTER TABLE nearsim.%I ADD CONSTRAINT %I UNIQUE USING INDEX %2$I', leaf, key);
        END IF;
    END LOOP;
END
$$;
"""

DOWNGRADE = """
DO $$
DECLARE
    leaf regclass;
    key name;
BEGIN
    FOR leaf, key IN
        SELECT conrelid, conname FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
        WHERE contype = 'u' AND relnamespace = 'nearsim'::regnamespace AND relname LIKE 'cluster_member_%'
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', leaf, key);
    END LOOP;
END
$$;
DROP INDEX nearsim.document_age;
ALTER TABLE nearsim.generation DROP COLUMN expired_through;
ALTER TABLE nearsim.collection DROP COLUMN purged_at;
ALTER TABLE nearsim.document DROP CONSTRAINT document_doc_id_positive;
DROP TRIGGER document_note_updated ON nearsim.document;
ALTER FUNCTION nearsim.note_written() RENAME TO note_inserted;
CREATE FUNCTION nearsim.note_updated() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.change (collection_id, doc_id)
    SELECT collection_id, doc_id FROM after_rows
    UNION
    SELECT collection_id, doc_id FROM before_rows;
    RETURN NULL;
END
$$;
CREATE TRIGGER document_note_updated AFTER UPDATE ON nearsim.document
    REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows
    FOR EACH STATEMENT EXECUTE FUNCTION nearsim.note_updated();
CREATE OR REPLACE FUNCTION nearsim.keep_revision() RETURNS trigger
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.revision := nextval('nearsim.document_revision');
    NEW.updated_at := now();
    RETURN NEW;
END
$$;
ALTER TABLE nearsim.change RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold),
    REPLICA IDENTITY DEFAULT,
    ADD COLUMN change_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY;
DELETE FROM nearsim.work WHERE stage = 'anchor';
DROP INDEX nearsim.work_set_aside, nearsim.work_tried_before, nearsim.work_not_tried;
ALTER TABLE nearsim.work
    RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold),
    DROP COLUMN queued_at,
    DROP COLUMN due_at,
    DROP COLUMN lease_id,
    DROP COLUMN again,
    DROP COLUMN attempts,
    DROP COLUMN reached,
    DROP COLUMN error,
    DROP COLUMN set_aside_at,
    DROP CONSTRAINT work_stage_known,
    ADD CONSTRAINT work_stage_known CHECK (stage IN ('sign', 'search', 'link', 'compare'));
COMMENT ON TABLE nearsim.work IS
    'What a generation has still to sign, to search or to link; doc_id 0 stands for all of it';
DROP TABLE nearsim.lease;
"""


def upgrade() -> None:
    """Work that waits keeps waiting, now free for any worker."""
    op.execute(COLUMNS)
    leaves = op.get_bind().execute(LEAVES).all()
    build_indexes(INDEXES | dict(map(tuple, leaves)))
    op.execute(UPGRADE)


def downgrade() -> None:
    """An anchor's work that was under way is turned back into a search."""
    op.execute(
        "INSERT INTO nearsim.work (generation_id, stage, doc_id) "
        "SELECT generation_id, 'search', doc_id FROM nearsim.work WHERE stage = 'anchor' ON CONFLICT DO NOTHING"
    )
    op.execute(DOWNGRADE)
