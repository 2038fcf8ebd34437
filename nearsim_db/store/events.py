"""Events: what triggers told of pairs and clusters, in the order in which it was committed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from nearsim_db.records import CollectionId, ProfileId
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.locks import Lock, hold_lock
from nearsim_db.store.driver.statements import Leaves, statement

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

_PRUNING = 1


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a pair, a cluster or a generation; what does not belong to its kind is None.

    `left`, `right` and `survivor` are external ids, None for documents that are gone. `other_ids` are the clusters that
    were merged, or that a cluster fell into, or what it was called before, and `other_survivor_ids` their survivors.
    """

    event_id: int
    kind: Kind
    at: datetime
    collection: str | None
    profile: str | None
    left: str | None
    right: str | None
    similarity: float | None
    survivor: str | None
    left_id: int | None
    right_id: int | None
    cluster_id: int | None
    survivor_id: int | None
    other_ids: tuple[int, ...] | None
    other_survivor_ids: tuple[int, ...] | None
    generation_id: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events are wanted: None stands for all collections, all their profiles, all kinds."""

    collection_id: CollectionId | None = None
    profile_id: ProfileId | None = None
    kinds: Sequence[Kind] | None = None


def read_newest(connection: Connection) -> int:
    """The number of the last event, 0 before the first; whoever sees it sees all that have a smaller one."""
    row = driver(connection).execute(statement("read_newest_event")).fetchone()
    return cast(tuple[int], row)[0]


def read_events(
    connection: Connection, wanted: Wanted, after: int, newest: int, most: int
) -> list[tuple[Event, bool]]:
    """The next events after one and up to another, each with whether it and all before it were removed."""
    parameters = {
        "collection_id": wanted.collection_id,
        "profile_id": wanted.profile_id,
        "kinds": None if wanted.kinds is None else list(wanted.kinds),
        "after": after,
        "newest": newest,
        "most": most,
    }
    rows = driver(connection).execute(statement("read_events"), parameters).fetchall()
    return [_event(*row) for row in cast(list[tuple[Any, ...]], rows)]


def hold_telling(connection: Connection, leaves: Leaves) -> None:
    """Keep others from telling of a generation, and from promoting or retiring it, until the transaction ends."""
    driver(connection).execute(statement("lock_generation", leaves))


def tell_slice(connection: Connection, leaves: Leaves, most: int) -> bool:
    """Tell so many pairs and clusters more of a generation that went live; whether others may be left."""
    row = driver(connection).execute(statement("tell_slice", leaves), {"most": most}).fetchone()
    return cast(tuple[bool], row)[0]


def prune(connection: Connection, age_seconds: int, most: int) -> int:
    """Remove events of more than an age, so many at most; returns how many went."""
    hold_lock(connection, Lock.EVENT, _PRUNING)
    parameters = {"age": age_seconds, "most": most}
    row = driver(connection).execute(statement("prune_events"), parameters).fetchone()
    return cast(tuple[int], row)[0]


def purge_events(connection: Connection, collection_id: CollectionId, doc_ids: NDArray[np.int64]) -> int:
    """Delete what events say of how similar documents were to others; returns how many went."""
    parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)}
    return driver(connection).execute(statement("purge_events"), parameters).rowcount


def _event(*row: Any) -> tuple[Event, bool]:
    *values, other_ids, other_survivor_ids, generation_id, pruned = row
    others = None if other_ids is None else tuple(other_ids)
    survivors = None if other_survivor_ids is None else tuple(other_survivor_ids)
    return Event(*(*values, others, survivors, generation_id)), pruned
