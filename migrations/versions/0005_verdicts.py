"""What people decided about pairs, kept beyond any generation.

Revision ID: 0005
Revises: 0004
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

UPGRADE = """
CREATE TABLE nearsim.verdict (
    verdict_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT verdict_pkey PRIMARY KEY,
    collection_id integer NOT NULL CONSTRAINT verdict_collection_fkey
        REFERENCES nearsim.collection ON DELETE CASCADE,
    left_id bigint NOT NULL,
    right_id bigint NOT NULL,
    verdict text NOT NULL,
    by text NOT NULL,
    why text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    undone_by text,
    undone_why text,
    undone_at timestamptz,
    CONSTRAINT verdict_ordered CHECK (left_id < right_id),
    CONSTRAINT verdict_known CHECK (verdict IN ('pinned', 'vetoed')),
    CONSTRAINT verdict_undone_whole CHECK
        ((undone_at IS NULL) = (undone_by IS NULL) AND (undone_at IS NULL) = (undone_why IS NULL))
);
CREATE UNIQUE INDEX verdict_one_standing ON nearsim.verdict (left_id, right_id) WHERE undone_at IS NULL;
COMMENT ON TABLE nearsim.verdict IS
    'Pairs that a person pinned (they belong together) or vetoed (they do not), with who, why and what was undone';
"""

DOWNGRADE = """
DROP TABLE nearsim.verdict;
"""


def upgrade() -> None:
    """Nothing is decided yet."""
    op.execute(UPGRADE)


def downgrade() -> None:
    """All verdicts are forgotten; clusters are put right by the next whole link."""
    op.execute(DOWNGRADE)
