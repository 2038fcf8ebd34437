"""The schema's own version."""

from sqlalchemy import Boolean, CheckConstraint, Column, PrimaryKeyConstraint, Table, Text, text

from nearsim_db.store.schema.tables.base import metadata

schema_floor = Table(
    "schema_floor",
    metadata,
    Column(
        "single",
        Boolean,
        nullable=False,
        server_default=text("true"),
        comment="Ensures that there is one row",
    ),
    Column(
        "oldest_revision",
        Text,
        nullable=False,
        comment="Minimum revision that the running code must know",
    ),
    Column(
        "baseline_digest",
        Text,
        nullable=False,
        comment="SHA-256 of the files in migrations/schema that this database was made from",
    ),
    PrimaryKeyConstraint("single", name="schema_floor_pkey"),
    CheckConstraint("single", name="schema_floor_one_row"),
    CheckConstraint("oldest_revision ~ '^[0-9]{4}$'", name="schema_floor_revision_known"),
    comment="Oldest code that may work with this schema, and the files that created it",
)
