"""The window of one generation: how far sweeps have come, and what has left since."""

from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import Connection

from nearsim_db.records import CollectionId
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import Leaves, statement


@dataclass(frozen=True, slots=True)
class Edge:
    """Documents from `after` on, or all if it is None, and before `through` have left since the sweep before."""

    after: datetime | None
    through: datetime


def begin(connection: Connection, leaves: Leaves, age_seconds: int | None) -> None:
    """Before a build signs its first document: no sweep has to look further back than now."""
    if age_seconds is not None:
        driver(connection).execute(statement("begin_retention", leaves), {"age": age_seconds})


def read_edge(connection: Connection, leaves: Leaves, age_seconds: int) -> Edge | None:
    """What a sweep has to look at, by the server's clock at this very moment; None where nobody works on it."""
    row = driver(connection).execute(statement("read_retention", leaves), {"age": age_seconds}).fetchone()
    return None if row is None else Edge(*cast(tuple[datetime | None, datetime], row))


def find_expired(
    connection: Connection, leaves: Leaves, collection_id: CollectionId, edge: Edge
) -> list[int]:
    """The signed documents that have left, those with the largest doc_id first."""
    parameters = {"collection_id": collection_id, "after": edge.after, "through": edge.through}
    rows = driver(connection).execute(statement("find_expired", leaves), parameters).fetchall()
    return [int(str(row[0])) for row in rows]


def move_through(connection: Connection, leaves: Leaves, through: datetime) -> None:
    """A sweep is done with all that left before a moment."""
    driver(connection).execute(statement("advance_retention", leaves), {"through": through})
