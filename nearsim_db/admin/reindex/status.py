"""How far the generations of a collection have come."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nearsim_db.admin.reindex.estimate import Standing, estimate, seconds_by_stage
from nearsim_db.errors import NotFoundError
from nearsim_db.indexing import profiles
from nearsim_db.store import catalog, partitions, signatures
from nearsim_db.store.catalog import Generation
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations import COMING, WORKABLE, is_attended, is_left, word
from nearsim_db.store.work import leases, queue


@dataclass(frozen=True, slots=True)
class Status:
    """A generation and what it waits for. `done` of `total` documents are through its stage, where that is known.

    `waiting` counts work that is queued for it, `set_aside` what failed for good. `is_attended` says that a process
    builds it now; one that is being built and is neither attended nor detached was left behind. `percent` is of the
    whole build and of what is queued, `seconds_left` None where nobody goes on. One that `waits_for_worker` is for
    workers to go on with, and none is at work. `differs` are the keys of its recipe that are
    other than the live one's, such as shingle.k.
    """

    generation: Generation
    is_attended: bool
    waits_for_worker: bool
    done: int | None
    total: int | None
    percent: float | None
    seconds_left: float | None
    waiting: int
    set_aside: int
    bytes: int
    differs: Mapping[str, Any]

    @property
    def is_left_behind(self) -> bool:
        """Whether its build was begun by a process that is gone, and is for a person to resume or abandon."""
        return is_left(self.generation, attended=self.is_attended)

    @property
    def remedy_where_refused(self) -> str | None:
        """What can be done where this code cannot write to it, as it would not make the same sketches; else None."""
        return profiles.remedy(self.generation) if profiles.is_refused(self.generation) else None

    @property
    def word(self) -> str:
        """How people are told of its state."""
        return word(self.generation, attended=self.is_attended)


def read_status(connection: Connection, collection: str, profile: str | None) -> list[Status]:
    """The generations of a profile, or of all; the oldest of each first. Raises NotFoundError."""
    collection_id = catalog.get_collection(connection, collection).collection_id
    there = catalog.list_generations(connection, collection_id)
    known = {one.profile for one in there}
    if profile is not None and profile not in known:
        names = ", ".join(sorted(known)) or "none yet"
        raise NotFoundError(f"collection {collection!r} has no profile {profile!r}; there are: {names}")
    live = {one.profile_id: one for one in there if one.state == "live"}
    chosen = [one for one in there if profile in (None, one.profile)]
    return [_status(connection, one, live.get(one.profile_id)) for one in chosen]


def _status(connection: Connection, generation: Generation, live: Generation | None) -> Status:
    waiting, set_aside = queue.count_work(connection, generation.leaves)
    if generation.state == "abandoned":
        waiting = set_aside = 0  # what others were at when it was given up
    attended = generation.state in COMING and is_attended(connection, generation)
    begun = generation.state == "building" and generation.detached
    for_workers = (begun or generation.state == "catching_up") and not attended
    idle = for_workers and not leases.list_workers(connection)
    done, total = _read_done(connection, generation)
    percent, left = _estimate(connection, generation, live, done, total, waiting)
    goes_on = attended or generation.detached or generation.state in WORKABLE
    if generation.state == "paused" or idle or not goes_on:
        left = None
    return Status(
        generation,
        attended,
        idle,
        done,
        total,
        percent,
        left,
        waiting,
        set_aside,
        partitions.read_bytes(connection, generation.leaves),
        _differences(generation, live),
    )


def _read_done(connection: Connection, generation: Generation) -> tuple[int | None, int | None]:
    """How many documents are through the stage of a build, of how many."""
    figures = generation.figures
    if generation.state not in ("building", "paused") or "began" not in figures:
        return None, None
    match generation.stage:
        case "sign" | "bands":
            return figures.get("done"), figures.get("total")
        case "pairs":
            through = signatures.count_heads(connection, generation.leaves, generation.verified_through)
            return through, signatures.count_heads(connection, generation.leaves)
        case _:
            return None, None


def _estimate(
    connection: Connection,
    generation: Generation,
    live: Generation | None,
    done: int | None,
    total: int | None,
    waiting: int,
) -> tuple[float | None, float | None]:
    if generation.state in ("ready", "abandoned", "live", "retired"):
        return None, None
    began = generation.figures.get("began", {})
    documents = generation.figures.get("documents")
    if documents is None:
        documents = catalog.count_documents(connection, generation.collection_id)
    here = began.get("stage") == generation.stage
    elapsed = queue.server_time(connection).timestamp() - began["at"] if here else 0.0
    share = None if done is None or not total else min(done / total, 1.0)
    before = began.get("done", 0) / total if here and total else 0.0
    standing = Standing(generation.stage, documents, share, before, max(elapsed, 0.0), waiting)
    usual = seconds_by_stage(live.figures if live is not None else {})
    spent = generation.figures.get("seconds", {})
    return estimate(standing, usual, spent, generation.figures.get("work_per_second"))


def _differences(generation: Generation, live: Generation | None) -> dict[str, Any]:
    """The keys of a recipe whose values are other than the live one's, with these values, None where left out."""
    if live is None or live.generation_id == generation.generation_id:
        return {}
    own, other = _flat(generation.recipe), _flat(live.recipe)
    return {key: own.get(key) for key in sorted(own.keys() | other.keys()) if own.get(key) != other.get(key)}


def _flat(recipe: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for section, values in recipe.items():
        inner = values if isinstance(values, dict) else {"": values}
        flat |= {f"{section}.{key}" if key else section: value for key, value in inner.items()}
    return flat
