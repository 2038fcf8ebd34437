"""How far the generations of a collection have come."""

from dataclasses import dataclass

from sqlalchemy import Connection

from nearsim_db.store import catalog, queue
from nearsim_db.store.catalog import Generation
from nearsim_db.store.generations import COMING
from nearsim_db.store.locks import Lock, is_taken


@dataclass(frozen=True, slots=True)
class Status:
    """A generation and what it waits for. `done` of `total` documents are through its stage, where that is known.

    `waiting` counts work that is queued for it, `set_aside` what failed for good. `is_attended` says that a process
    builds it now; one that is being built and is neither attended nor detached was left behind.
    """

    generation: Generation
    is_attended: bool
    done: int | None
    total: int | None
    waiting: int
    set_aside: int
    seconds_left: float | None

    @property
    def is_left_behind(self) -> bool:
        """Whether its build was begun by a process that is gone, and is for a person to resume or abandon."""
        one = self.generation
        return (
            one.state == "building" and one.replaces is not None and not one.detached and not self.is_attended
        )


def read_status(connection: Connection, collection: str, profile: str | None) -> list[Status]:
    """The generations of a profile, or of all; the oldest of each first. Raises NotFoundError."""
    collection_id = catalog.get_collection(connection, collection).collection_id
    there = catalog.list_generations(connection, collection_id)
    return [_status(connection, one) for one in there if profile in (None, one.profile)]


def _status(connection: Connection, generation: Generation) -> Status:
    waiting, set_aside = queue.count_work(connection, generation.leaves)
    attended = generation.state in COMING and is_taken(connection, Lock.REINDEX, generation.generation_id)
    figures = generation.figures if generation.state in ("building", "paused") else {}
    return Status(generation, attended, figures.get("done"), figures.get("total"), waiting, set_aside, None)
