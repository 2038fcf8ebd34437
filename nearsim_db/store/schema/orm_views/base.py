"""The base of mapped views, and the types of their columns."""

from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar

from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    DateTime,
    Double,
    Interval,
    MetaData,
    SmallInteger,
    Text,
    event,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, mapped_column

from nearsim_db.errors import NearsimError
from nearsim_db.store.schema.tables import SCHEMA

Big = Annotated[int, mapped_column(BigInteger)]
Small = Annotated[int, mapped_column(SmallInteger)]
Real = Annotated[float, mapped_column(REAL)]
Name = Annotated[str, mapped_column(Text(collation="C"))]
Key = Annotated[int, mapped_column(primary_key=True)]
BigKey = Annotated[int, mapped_column(BigInteger, primary_key=True)]


class View(DeclarativeBase):
    """Base of the mapped views, which show live generations only."""

    metadata = MetaData(schema=SCHEMA)
    type_annotation_map: ClassVar = {
        str: Text,
        float: Double,
        datetime: DateTime(timezone=True),
        timedelta: Interval,
        dict[str, Any]: JSONB,
        list[int]: ARRAY(BigInteger),
        list[str]: ARRAY(Text),
    }


@event.listens_for(View, "before_insert", propagate=True)
@event.listens_for(View, "before_update", propagate=True)
@event.listens_for(View, "before_delete", propagate=True)
def _refuse(mapper: object, connection: object, target: object) -> None:
    raise NearsimError(f"{type(target).__name__} is a view, to be read only; write nearsim.document instead")
