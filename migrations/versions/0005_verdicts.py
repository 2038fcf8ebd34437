"""What people decided about pairs, kept beyond any generation.

Revision ID: 0005
Revises: 0004
"""

from pathlib import Path

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql" / revision

CREATED = ("verdict", "judge", "functions")

DOWNGRADE = """
DROP FUNCTION nearsim.pin_pair(text, text, text, text, text), nearsim.veto_pair(text, text, text, text, text),
    nearsim.undo_verdict(text, text, text, text, text), nearsim.pin_pair(bigint, bigint, text, text),
    nearsim.veto_pair(bigint, bigint, text, text), nearsim.undo_verdict(bigint, bigint, text, text),
    nearsim.documents_named(text, text, text), nearsim.judge(text, bigint, bigint, text, text),
    nearsim.undo_standing(bigint, bigint, text, text);
DROP TABLE nearsim.verdict;
DROP FUNCTION nearsim.note_verdict();
DELETE FROM nearsim.change WHERE stage IS NOT NULL;
ALTER TABLE nearsim.change DROP COLUMN stage;
"""


def upgrade() -> None:
    """Nothing is decided yet."""
    for name in CREATED:
        op.execute((STATEMENTS / f"{name}.sql").read_text("utf-8"))


def downgrade() -> None:
    """All verdicts are forgotten; clusters are put right by the next whole link."""
    op.execute(DOWNGRADE)
