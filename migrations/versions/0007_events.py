"""An outbox of what changes: pairs found and gone, clusters merged and split, survivors changed.

Revision ID: 0007
Revises: 0006
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

from nearsim_db.store.schema.migration_locks import commit_so_far

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql" / revision

CREATED = ("event", "drafts", "watch", "tell", "events", "begin")


def upgrade() -> None:
    """Create what is in the files, in this order; the last one begins to use it.

    To tell what is there takes long, and nobody is to wait for the locks of the triggers meanwhile. Whatever is changed
    before it is told of is a part of it: a generation that goes live is told anew.
    """
    if op.get_bind().scalar(sa.text("SELECT to_regclass('nearsim.event')")) is None:
        for name in CREATED:
            op.execute((STATEMENTS / f"{name}.sql").read_text("utf-8"))
        commit_so_far()
    op.execute((STATEMENTS / "live.sql").read_text("utf-8"))


def downgrade() -> None:
    """Nothing is told any more, and what was told is forgotten."""
    op.execute((STATEMENTS / "end.sql").read_text("utf-8"))
