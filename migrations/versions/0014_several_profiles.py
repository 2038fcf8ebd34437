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

CREATED = (
    "combined_pairs",
    "serving_together",
    "similar_by_profiles",
    "combined_clusters",
    "backlog",
    "rights",
)


def upgrade() -> None:
    """Create what is in the files, in this order."""
    for name in CREATED:
        op.execute((STATEMENTS / revision / f"{name}.sql").read_text("utf-8"))


def downgrade() -> None:
    """Drop it; the view backlog becomes what it was before."""
    op.execute((STATEMENTS / revision / "end.sql").read_text("utf-8"))
    before = (STATEMENTS / "0006" / "backlog.sql").read_text("utf-8")
    op.execute(before.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
