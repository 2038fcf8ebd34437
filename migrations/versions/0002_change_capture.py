"""Any application's writes to documents are noted, and nothing else is done about them there.

Revision ID: 0002
Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

UPGRADE = """
ALTER TABLE nearsim.work DROP CONSTRAINT work_stage_known;
ALTER TABLE nearsim.work ADD CONSTRAINT work_stage_known CHECK (stage IN ('sign', 'search', 'link', 'compare'))
    NOT VALID;

CREATE TABLE nearsim.change (
    change_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id integer,
    doc_id bigint,
    changed_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT change_one_or_everything CHECK ((collection_id IS NULL) = (doc_id IS NULL))
);

COMMENT ON TABLE nearsim.change IS
    'Writes to document that no index has taken in yet; triggers append and do nothing else';

CREATE FUNCTION nearsim.note_inserted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.change (collection_id, doc_id) SELECT collection_id, doc_id FROM after_rows;
    RETURN NULL;
END
$$;
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
CREATE FUNCTION nearsim.note_deleted() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.change (collection_id, doc_id) SELECT collection_id, doc_id FROM before_rows;
    RETURN NULL;
END
$$;
CREATE FUNCTION nearsim.note_truncated() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO nearsim.change (collection_id, doc_id) VALUES (NULL, NULL);
    RETURN NULL;
END
$$;

CREATE TRIGGER document_note_inserted AFTER INSERT ON nearsim.document
    REFERENCING NEW TABLE AS after_rows FOR EACH STATEMENT EXECUTE FUNCTION nearsim.note_inserted();
CREATE TRIGGER document_note_updated AFTER UPDATE ON nearsim.document
    REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows
    FOR EACH STATEMENT EXECUTE FUNCTION nearsim.note_updated();
CREATE TRIGGER document_note_deleted AFTER DELETE ON nearsim.document
    REFERENCING OLD TABLE AS before_rows FOR EACH STATEMENT EXECUTE FUNCTION nearsim.note_deleted();
CREATE TRIGGER document_note_truncated AFTER TRUNCATE ON nearsim.document
    FOR EACH STATEMENT EXECUTE FUNCTION nearsim.note_truncated();
"""

DOWNGRADE = """
DROP TRIGGER document_note_inserted ON nearsim.document;
DROP TRIGGER document_note_updated ON nearsim.document;
DROP TRIGGER document_note_deleted ON nearsim.document;
DROP TRIGGER document_note_truncated ON nearsim.document;
DROP FUNCTION nearsim.note_inserted(), nearsim.note_updated(), nearsim.note_deleted(), nearsim.note_truncated();
DROP TABLE nearsim.change;
DELETE FROM nearsim.work WHERE stage = 'compare';
ALTER TABLE nearsim.work DROP CONSTRAINT work_stage_known;
ALTER TABLE nearsim.work ADD CONSTRAINT work_stage_known CHECK (stage IN ('sign', 'search', 'link'));
"""


def upgrade() -> None:
    """From here on changes are noted; what was written before is found by comparing, as after a TRUNCATE."""
    op.execute(UPGRADE)
    op.execute("INSERT INTO nearsim.change (collection_id, doc_id) VALUES (NULL, NULL)")


def downgrade() -> None:
    """Changes are no longer noted; those that were not taken in yet are lost."""
    op.execute(DOWNGRADE)
