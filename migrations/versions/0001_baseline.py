"""The whole schema, from the files in migrations/schema, one for each object.

Until the first release these files are edited in place. This revision stores a digest of them, and nearsim refuses a
database that was made from other contents. From the first release on the files are frozen, and each later revision has
its own SQL.

Revision ID: 0001
Revises:
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SCHEMA = Path(__file__).parents[1] / "schema"

FLOOR = sa.text(
    "INSERT INTO nearsim_index.schema_floor (oldest_revision, baseline_digest) VALUES (:revision, :digest)"
)


def upgrade() -> None:
    """Create the objects in the order of schema/order.txt."""
    for line in (SCHEMA / "order.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            op.execute((SCHEMA / f"{line}.sql").read_text("utf-8"))
    digest = op.get_context().opts["baseline_digest"]
    op.get_bind().execute(FLOOR, {"revision": revision, "digest": digest})


def downgrade() -> None:
    """Drop all objects, data included. The database raises an error while a collection has an attached table."""
    op.execute((SCHEMA / "drop.sql").read_text("utf-8"))
