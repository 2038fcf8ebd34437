"""Texts that applications ask about from SQL, answered by a worker.

Revision ID: 0008
Revises: 0007
"""

from pathlib import Path

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql" / revision

CREATED = ("probe", "ask", "call")

DOWNGRADE = """
DROP PROCEDURE nearsim.similar_to_text(text, jsonb, text, text, text, double precision, interval);
DROP PROCEDURE nearsim.commit_question();
DROP FUNCTION nearsim.answer_to(bigint);
DROP FUNCTION nearsim.similar_to_text(bigint);
DROP FUNCTION nearsim.await_answer(bigint);
DROP FUNCTION nearsim.ask(text, text, text, text, double precision, interval);
DROP TABLE nearsim.probe_match;
DROP TABLE nearsim.probe;
DROP FUNCTION nearsim.note_probe();
"""


def upgrade() -> None:
    """Create what is in the files, in this order."""
    for name in CREATED:
        op.execute((STATEMENTS / f"{name}.sql").read_text("utf-8"))


def downgrade() -> None:
    """Questions that nobody answered yet are lost."""
    op.execute(DOWNGRADE)
