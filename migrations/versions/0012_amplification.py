"""Amplification of bands, and the recall that is expected of a generation.

Revision ID: 0012
Revises: 0011
"""

import re
from pathlib import Path

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql"

CREATED: tuple[str, ...] = (
    "expected_recall",
    "amplification",
    "profiles",
    "met_by",
    "similar_to",
    "why_not",
    "rights",
)

# The functions that stand there as 0011 left them, by the file that they are in.
RESTORED = (
    ("met_by", "met_by"),
    ("similar_to", "similar_to"),
    ("why_not", "reason_of"),
    ("why_not", "why_not"),
)

# What 0011 says of the view of 0006.
THRESHOLD = """
COMMENT ON COLUMN nearsim.profiles.threshold IS
    'Similarity from which two documents are a pair; for projection the largest distance';
"""


def upgrade() -> None:
    """Carry out what is in the files, in this order."""
    for name in CREATED:
        op.execute(_text(f"{revision}/{name}"))


def downgrade() -> None:
    """Undo it. Refused while a profile has an amplification."""
    op.execute(_text(f"{revision}/end"))
    op.execute(_text("0006/profiles") + THRESHOLD)
    for file, function in RESTORED:
        op.execute(_function(_text(f"0011/{file}"), function))
    op.execute(_text(f"{revision}/rights"))


def _text(name: str) -> str:
    return (STATEMENTS / f"{name}.sql").read_text("utf-8")


def _function(text: str, name: str) -> str:
    """The definition of one function of a file."""
    found = re.search(rf"CREATE OR REPLACE FUNCTION nearsim\.{name}\(.*?\n\$\$;\n", text, re.DOTALL)
    assert found is not None
    return found[0]
