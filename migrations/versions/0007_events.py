"""An outbox of what changes: pairs found and gone, clusters merged and split, survivors changed.

Revision ID: 0007
Revises: 0006
"""

from pathlib import Path

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql" / revision

CREATED = ("event", "drafts", "watch", "tell", "events", "begin")


def upgrade() -> None:
    """Create what is in the files, in this order; the last one begins to use it."""
    for name in CREATED:
        op.execute((STATEMENTS / f"{name}.sql").read_text("utf-8"))


def downgrade() -> None:
    """Nothing is told any more, and what was told is forgotten."""
    op.execute((STATEMENTS / "end.sql").read_text("utf-8"))
