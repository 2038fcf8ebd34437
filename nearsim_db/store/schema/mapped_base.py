"""Base classes of mapped tables and views, and filters that keep an application's Alembic out of nearsim's schemas."""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import BigInteger, DateTime, Double, MetaData, Text, event
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase

from nearsim_db.errors import NearsimError
from nearsim_db.store.driver.statements import INDEX_SCHEMA, SCHEMA

# Types of columns by the Python type of their values, for columns that do not name a type.
TYPES: dict[Any, Any] = {
    str: Text(),
    int: BigInteger(),
    float: Double(),
    datetime: DateTime(timezone=True),
    dict[str, Any]: JSONB(),
}


class Base(DeclarativeBase):
    """Base class of the mapped tables."""

    metadata: ClassVar[MetaData] = MetaData(schema=SCHEMA)
    type_annotation_map = TYPES


class View(DeclarativeBase):
    """Base class of the mapped views."""

    metadata: ClassVar[MetaData] = MetaData(schema=SCHEMA)
    type_annotation_map = TYPES


@event.listens_for(View, "before_insert", propagate=True)
@event.listens_for(View, "before_update", propagate=True)
@event.listens_for(View, "before_delete", propagate=True)
def _refuse(mapper: object, connection: object, target: object) -> None:
    raise NearsimError(f"{type(target).__name__} is a view, to be read only; write nearsim.document instead")


def include_name(name: str | None, type_: str, parent_names: object) -> bool:
    """Make autogenerate skip nearsim's schemas; for the `env.py` of an application."""
    return not (type_ == "schema" and name in (SCHEMA, INDEX_SCHEMA))


def include_object(object: Any, name: str | None, type_: str, reflected: bool, compare_to: object) -> bool:
    """Keep autogenerate from creating, dropping or changing nearsim's objects; for the `env.py` of an application."""
    table = object if type_ == "table" else object.table
    return bool(table.schema not in (SCHEMA, INDEX_SCHEMA))
