"""Generations that are built beside the one that answers.

Revision ID: 0012
Revises: 0011
"""

from pathlib import Path

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql"


def upgrade() -> None:
    """What a generation has to say of itself."""
    op.execute((STATEMENTS / revision / "begin.sql").read_text("utf-8"))


def downgrade() -> None:
    """Refused while a profile has more than one generation."""
    op.execute((STATEMENTS / revision / "end.sql").read_text("utf-8"))
    op.execute((STATEMENTS / "0006" / "generations.sql").read_text("utf-8"))
    op.execute("SELECT nearsim.grant_rights()")
