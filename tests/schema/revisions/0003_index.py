"""An index on a table that grows.

Revision ID: 0003
Revises: 0002
"""

from alembic import op

from nearsim_db.store.schema.migration_locks import build_indexes

revision = "0003"
down_revision = "0002"

INDEXES = {"document_url": "CREATE INDEX CONCURRENTLY document_url ON nearsim.document (url)"}


def upgrade() -> None:
    """Build it, and then alter a table that workers use."""
    build_indexes(INDEXES)
    op.execute("ALTER TABLE nearsim.work ADD COLUMN priority smallint")


def downgrade() -> None:
    """Drop both."""
    op.execute("ALTER TABLE nearsim.work DROP COLUMN priority")
    op.execute("DROP INDEX nearsim.document_url")
