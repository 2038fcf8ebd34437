"""Columns and constraints on tables in use, and on partitions that are not attached yet.

Revision ID: 0002
Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"

UPGRADE = """
ALTER TABLE nearsim.document
    ADD COLUMN language text NOT NULL DEFAULT 'en',
    ADD CONSTRAINT document_language_length CHECK (length(language) = 2) NOT VALID;
DO $$
DECLARE
    name regclass;
BEGIN
    FOR name IN
        SELECT oid FROM pg_class
        WHERE relnamespace IN (CAST('nearsim' AS regnamespace), CAST('nearsim_index' AS regnamespace))
            AND relname ~ '^signature(_[0-9]+)?$' AND NOT relispartition
        ORDER BY oid
    LOOP
        EXECUTE format('ALTER TABLE %s ADD COLUMN note text', name);
    END LOOP;
END
$$;
"""


def upgrade() -> None:
    """Add them."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """Drop them."""
    op.execute("ALTER TABLE nearsim.signature DROP COLUMN note")
    op.execute("ALTER TABLE nearsim.document DROP COLUMN language")
