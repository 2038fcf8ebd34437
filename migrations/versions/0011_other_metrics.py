"""Pairs of metrics that count no features, distances, and sketches of one byte a position.

Revision ID: 0011
Revises: 0010
"""

from pathlib import Path

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql" / revision

CREATED: tuple[str, ...] = ("begin",)


def upgrade() -> None:
    """Carry out what is in the files, in this order."""
    for name in CREATED:
        op.execute((STATEMENTS / f"{name}.sql").read_text("utf-8"))


def downgrade() -> None:
    """Undo it."""
    op.execute((STATEMENTS / "end.sql").read_text("utf-8"))
