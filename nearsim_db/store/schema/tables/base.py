"""Shared by all tables: schemas, metadata and timestamp columns."""

from sqlalchemy import Column, DateTime, MetaData, text

SCHEMA = "nearsim"
INDEX_SCHEMA = "nearsim_index"
metadata = MetaData(schema=SCHEMA)
NOW = text("now()")


def timestamp_column(name: str, comment: str, *, required: bool = True) -> Column[object]:
    """Return a timestamptz column; a required one defaults to now()."""
    return Column(
        name,
        DateTime(timezone=True),
        nullable=not required,
        server_default=NOW if required else None,
        comment=comment,
    )
