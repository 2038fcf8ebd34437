"""What all tables share: the schema, the metadata, and columns that hold a moment."""

from sqlalchemy import Column, DateTime, MetaData, text

SCHEMA = "nearsim"
INDEX_SCHEMA = "nearsim_index"
metadata = MetaData(schema=SCHEMA)
NOW = text("now()")


def moment(name: str, comment: str, *, required: bool = True) -> Column[object]:
    """A timestamptz column; one that is required is now() by default."""
    return Column(
        name,
        DateTime(timezone=True),
        nullable=not required,
        server_default=NOW if required else None,
        comment=comment,
    )
