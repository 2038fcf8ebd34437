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
    """From here on a process may meet a schema that is newer than itself."""
    op.execute((STATEMENTS / revision / "begin.sql").read_text("utf-8"))


def downgrade() -> None:
    """Every process needs exactly its own schema again."""
    op.execute((STATEMENTS / revision / "end.sql").read_text("utf-8"))
