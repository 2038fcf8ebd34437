"""Which versions of the code may work with this schema.

Revision ID: 0015
Revises: 0014
"""

from pathlib import Path

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql"


def upgrade() -> None:
    """The floor."""
    op.execute((STATEMENTS / revision / "begin.sql").read_text("utf-8"))


def downgrade() -> None:
    """Drop it."""
    op.execute((STATEMENTS / revision / "end.sql").read_text("utf-8"))
