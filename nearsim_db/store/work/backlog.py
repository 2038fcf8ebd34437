"""What waits to be done, over all generations of a collection or of all lasting ones."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection

from nearsim_db.records import CollectionId, GenerationId
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import statement
from nearsim_db.store.work.queue import STAGES, Stage


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much work waits or is being done by stage, what was set aside, and noted changes that are not work yet.

    `held` is work that nobody takes before an index is built or its build is resumed, or that cannot be done here; it
    is not in `by_stage`.
    `oldest_seconds` is the age of what has waited longest, 0 where nothing waits; an index that catches up after its
    build does not count.
    """

    by_stage: dict[Stage, int]
    set_aside: int
    oldest_seconds: float
    changes: int
    leases: int
    held: int


def read_backlog(
    connection: Connection, collection_id: CollectionId | None, without: Iterable[GenerationId] = ()
) -> Backlog:
    """What waits now; all of the queue is counted. Work of some generations, which cannot be done here, is held."""
    parameters = {"collection_id": collection_id, "stages": list(STAGES), "without": list(without)}
    cursor = driver(connection).execute(statement("read_backlog"), parameters)
    counts, set_aside, oldest, changes, leases, held = cursor.fetchall()[0]
    assert isinstance(counts, list)
    return Backlog(
        dict(zip(STAGES, counts, strict=True)),
        int(str(set_aside)),
        float(str(oldest)),
        int(str(changes)),
        int(str(leases)),
        int(str(held)),
    )


def count_changes(connection: Connection, collection_id: CollectionId | None) -> int:
    """How many noted changes of a collection, or of all lasting ones, are not work yet."""
    row = driver(connection).execute(statement("count_changes"), {"collection_id": collection_id}).fetchone()
    assert row is not None
    return int(str(row[0]))


def is_anything_left(
    connection: Connection, collection_id: CollectionId | None, without: list[GenerationId]
) -> bool:
    """Whether anything is still to be done but what was set aside, leaving out some generations."""
    parameters = {"collection_id": collection_id, "without": without}
    row = driver(connection).execute(statement("has_remaining_work"), parameters).fetchone()
    return row is not None and bool(row[0])
