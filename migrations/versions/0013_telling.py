"""A generation that goes live is told of after that, in slices.

Revision ID: 0013
Revises: 0012
"""

import re
from pathlib import Path

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql"

RESTORED = ("tell_pairs", "tell_clusters", "tell_generation", "tell")


def upgrade() -> None:
    """How far a generation is told of, the work of telling the rest, and functions that heed it."""
    for name in ("begin", "telling"):
        op.execute((STATEMENTS / revision / f"{name}.sql").read_text("utf-8"))


def downgrade() -> None:
    """Tell what is left to be told at once, and have all told at once from then on."""
    op.execute((STATEMENTS / revision / "end.sql").read_text("utf-8"))
    before = (STATEMENTS / "0007" / "tell.sql").read_text("utf-8")
    for name in RESTORED:
        op.execute(_function(before, name).replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
    op.execute("SELECT nearsim.grant_rights()")


def _function(text: str, name: str) -> str:
    """The definition of one function of a file, and its comment."""
    found = re.search(
        rf"CREATE FUNCTION nearsim\.{name}\(.*?COMMENT ON FUNCTION nearsim\.{name}\(.*?;\n", text, re.DOTALL
    )
    assert found is not None
    return found[0]
