"""Retention in one generation: how far sweeps have come, and which documents have expired since."""

from dataclasses import dataclass
from datetime import datetime

from nearsim_db.records import CollectionId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.rows import fetch_first, fetch_values
from nearsim_db.store.driver.statements import Leaves, statement


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """Documents dated from `after` (all if None) to before `through` have expired since the previous sweep."""

    after: datetime | None
    through: datetime


def begin(connection: Connection, leaves: Leaves, age_seconds: int | None) -> None:
    """Mark the start of a build: sweeps need not look further back than now."""
    if age_seconds is not None:
        connection.execute(statement("begin_retention", leaves), {"age": age_seconds})


def read_cutoffs(connection: Connection, leaves: Leaves, age_seconds: int) -> Cutoffs | None:
    """Return the dates that a sweep has to cover, by the server's clock; None if the generation is not maintained."""
    return fetch_first(connection, Cutoffs, statement("read_retention", leaves), {"age": age_seconds})


def find_expired(
    connection: Connection, leaves: Leaves, collection_id: CollectionId, cutoffs: Cutoffs
) -> list[int]:
    """Return the signed documents that have expired, largest doc_id first."""
    parameters = {"collection_id": collection_id, "after": cutoffs.after, "through": cutoffs.through}
    return fetch_values(connection, statement("find_expired", leaves), parameters)


def advance(connection: Connection, leaves: Leaves, through: datetime) -> None:
    """Record that a sweep has removed all that expired before a moment."""
    connection.execute(statement("advance_retention", leaves), {"through": through})
