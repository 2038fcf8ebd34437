"""Roles for readers, writers and administrators, and policies that keep collections apart.

Revision ID: 0010
Revises: 0009
"""

from pathlib import Path

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql" / revision

CREATED = ("roles", "ownership", "rights", "policies", "begin")


def upgrade() -> None:
    """Create what is in the files, in this order; the last one begins to use it."""
    for name in CREATED:
        op.execute((STATEMENTS / f"{name}.sql").read_text("utf-8"))


def downgrade() -> None:
    """Everything belongs to the one who does this, and is open to PUBLIC as it was."""
    op.execute((STATEMENTS / "end.sql").read_text("utf-8"))
