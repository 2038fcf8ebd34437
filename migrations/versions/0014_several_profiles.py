"""Answers of several profiles together.

Revision ID: 0014
Revises: 0013
"""

from pathlib import Path

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql"


def upgrade() -> None:
    """Views and functions."""
    op.execute((STATEMENTS / revision / "begin.sql").read_text("utf-8"))


def downgrade() -> None:
    """Drop them."""
    op.execute((STATEMENTS / revision / "end.sql").read_text("utf-8"))
