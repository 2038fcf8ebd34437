"""Collections that follow a table of an application.

Revision ID: 0009
Revises: 0008
"""

from pathlib import Path

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql" / revision

CREATED = ("attachment", "source_ids", "note_source", "body_of")


def upgrade() -> None:
    """Create what is in the files, in this order."""
    for name in CREATED:
        op.execute((STATEMENTS / f"{name}.sql").read_text("utf-8"))


def downgrade() -> None:
    """Refused while a table is followed."""
    op.execute((STATEMENTS / "end.sql").read_text("utf-8"))
