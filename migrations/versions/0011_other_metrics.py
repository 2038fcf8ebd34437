"""Pairs of metrics that count no features, distances, sketches of one byte a position; amplification of bands.

Revision ID: 0011
Revises: 0010
"""

import re
from pathlib import Path

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

STATEMENTS = Path(__file__).parents[1] / "sql"

CREATED: tuple[str, ...] = (
    "begin",
    "expected_recall",
    "metrics",
    "pairs",
    "band_keys",
    "sketches",
    "amplification",
    "profiles",
    "pairs_of",
    "met_by",
    "similar_to",
    "numbers",
    "why",
    "why_not",
    "dedupe",
    "similar_to_text",
    "rights",
)

# What stands there as it was before, in the order in which one needs the other.
RESTORED: tuple[str, ...] = (
    "0006/profiles",
    "0006/pairs",
    "0006/estimate",
    "0006/band_keys",
    "0006/sketches",
    "0006/pairs_of",
    "0006/met_by",
    "0006/similar_to",
    "0006/why",
    "0006/why_not",
    "0006/dedupe",
)
SINGLE = ("0006/numbers", "numbers_of"), ("0008/ask", "similar_to_text"), ("0008/call", "answer_to")


def upgrade() -> None:
    """Carry out what is in the files, in this order."""
    for name in CREATED:
        op.execute(_text(f"{revision}/{name}"))


def downgrade() -> None:
    """Undo it. Refused while a profile has another metric than Jaccard, or an amplification."""
    op.execute(_text(f"{revision}/end"))
    for name in RESTORED:
        op.execute(_text(name).replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
    for file, function in SINGLE:
        op.execute(_function(_text(file), function).replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
    op.execute(_text(f"{revision}/rights"))


def _text(name: str) -> str:
    return (STATEMENTS / f"{name}.sql").read_text("utf-8")


def _function(text: str, name: str) -> str:
    """The definition of one function of a file, and its comment."""
    found = re.search(
        rf"CREATE FUNCTION nearsim\.{name}\(.*?COMMENT ON FUNCTION nearsim\.{name}\(.*?;\n", text, re.DOTALL
    )
    assert found is not None
    return found[0]
