"""A first part that needs no lock and is committed on its own, and a second one that waits for locks.

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

from nearsim_db.store.schema.migration_locks import commit_so_far

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Copy the names of the collections, and then alter the table of changes."""
    if op.get_bind().scalar(sa.text("SELECT to_regclass('nearsim.collection_name')")) is None:
        op.execute("CREATE TABLE nearsim.collection_name AS SELECT name FROM nearsim.collection")
        commit_so_far()
    op.execute("ALTER TABLE nearsim.change ADD COLUMN reason text")


def downgrade() -> None:
    """Drop both."""
    op.execute("ALTER TABLE nearsim.change DROP COLUMN reason")
    op.execute("DROP TABLE nearsim.collection_name")
