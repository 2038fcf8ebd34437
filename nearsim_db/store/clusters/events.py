"""Events of pairs, clusters and generations, in commit order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from nearsim_db.records import CollectionId, ProfileId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.driver.statements import run

if TYPE_CHECKING:
    from nearsim_db.similarity.arrays import Ints

Kind = Literal[
    "pair_found",
    "pair_gone",
    "cluster_formed",
    "cluster_gone",
    "cluster_merged",
    "cluster_split",
    "cluster_renamed",
    "cluster_changed",
    "survivor_changed",
    "generation_live",
    "generation_gone",
]

# The id of the lock Lock.EVENT that prevents two sessions from pruning at the same time.
_PRUNING_LOCK_ID = 1


@dataclass(frozen=True, slots=True)
class Event:
    """A change of a pair, a cluster or a generation; fields that do not belong to its kind are None."""

    event_id: int
    kind: Kind
    at: datetime
    collection: str | None
    profile: str | None
    left: str | None  # external id of the left document; None if it was deleted
    right: str | None  # external id of the right document; None if it was deleted
    similarity: float | None  # similarity of a new pair
    survivor: str | None  # external id of the survivor; None if it was deleted
    left_id: int | None
    right_id: int | None
    cluster_id: int | None
    survivor_id: int | None
    # Clusters that were merged into this one, or clusters that it was split into, or its own former id.
    other_ids: tuple[int, ...] | None
    other_survivor_ids: tuple[int, ...] | None  # survivors of these clusters, in the same order
    generation_id: int
    verified: bool | None  # False if `similarity` is an estimate


@dataclass(frozen=True, slots=True)
class EventFilter:
    """A filter for events; None selects all collections, all profiles, or all kinds."""

    collection_id: CollectionId | None = None
    profile_id: ProfileId | None = None
    kinds: Sequence[Kind] | None = None


def read_newest(connection: Connection) -> int:
    """Return the number of the last event, or 0 if there is none; all events with smaller numbers are visible too."""
    return int(run(connection, "read_newest_event").value())


def read_events(
    connection: Connection, wanted: EventFilter, after: int, newest: int, max_events: int
) -> list[tuple[Event, bool]]:
    """Return the next events with numbers above `after` and up to `newest`, each with whether it is a mark.

    A mark is what remains of the last deleted event of a kind and profile.
    """
    parameters = {
        "collection_id": wanted.collection_id,
        "profile_id": wanted.profile_id,
        "kinds": None if wanted.kinds is None else list(wanted.kinds),
        "after": after,
        "newest": newest,
        "max_events": max_events,
    }
    return run(connection, "read_events", **parameters).all(_event)


def prune(connection: Connection, age_seconds: int, max_events: int) -> int:
    """Delete up to `max_events` events that are older than `age_seconds`; return their number."""
    take_transaction_lock(connection, Lock.EVENT, _PRUNING_LOCK_ID)
    return int(run(connection, "prune_events", age=age_seconds, max_events=max_events).value())


def purge_events(connection: Connection, collection_id: CollectionId, doc_ids: "Ints") -> int:
    """Delete events with similarities of these documents; return their number."""
    return run(connection, "purge_events", collection_id=collection_id, doc_ids=packed_ids(doc_ids)).count


def _event(*row: Any) -> tuple[Event, bool]:
    *values, other_ids, other_survivor_ids, generation_id, verified, is_pruned = row
    other_ids = None if other_ids is None else tuple(other_ids)
    other_survivor_ids = None if other_survivor_ids is None else tuple(other_survivor_ids)
    return Event(*(*values, other_ids, other_survivor_ids, generation_id, verified)), is_pruned
