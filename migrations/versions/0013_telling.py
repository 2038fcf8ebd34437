"""A generation that goes live is told of in slices.

Revision ID: 0013
Revises: 0012
"""

from pathlib import Path

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql"


def upgrade() -> None:
    """Functions and a stage of work."""
    op.execute((STATEMENTS / revision / "begin.sql").read_text("utf-8"))


def downgrade() -> None:
    """Undo it."""
    op.execute((STATEMENTS / revision / "end.sql").read_text("utf-8"))
