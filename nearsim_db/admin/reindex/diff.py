"""How a generation differs from the live one, read at one moment."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from nearsim_db.admin.reindex import samples, select
from nearsim_db.admin.reindex.diff_result import (
    ClusterCounts,
    Compared,
    Difference,
    Documents,
    PairCounts,
    Waiting,
)
from nearsim_db.admin.reindex.limits import Limits, check
from nearsim_db.errors import ConflictError
from nearsim_db.records import Progress, silent
from nearsim_db.store import diffs
from nearsim_db.store.catalog import Generation
from nearsim_db.store.diffs import Both
from nearsim_db.store.driver import Connection
from nearsim_db.store.work import backlog, queue

_STEPS = 4


def choose(
    connection: Connection, generations: Sequence[Generation], generation_id: int | None
) -> tuple[Generation, Generation]:
    """The live generation and the one to compare with it: that which is coming, or the one of that number.

    Raises ConflictError where there is nothing to compare yet.
    """
    live = select.live(generations)
    new = (
        select.to_compare(generations)
        if generation_id is None
        else select.numbered(generations, generation_id)
    )
    if new.generation_id == live.generation_id:
        raise ConflictError(f"generation {generation_id} is the live one; name another to compare it with")
    if new.state == "abandoned":
        raise ConflictError(
            f"generation {new.generation_id} was abandoned and does not follow the documents any more; name another"
        )
    select.refuse_unbuilt(connection, new)
    return live, new


def compare(
    connection: Connection,
    collection: str,
    live: Generation,
    new: Generation,
    amount: int,
    limits: Limits,
    backend: str | None = None,
    progress: Progress = silent,
) -> Difference:
    """Count what differs and choose `amount` samples of each kind; `connection` sees one moment."""
    began = time.monotonic()
    both = Both(live.leaves, new.leaves)
    progress("diff", 0, _STEPS)
    documents = Documents(
        diffs.count_documents(connection, live.leaves), diffs.count_documents(connection, new.leaves)
    )
    progress("diff", 1, _STEPS)
    pairs = _count_pairs(connection, both)
    progress("diff", 2, _STEPS)
    clusters = _count_clusters(connection, both)
    progress("diff", 3, _STEPS)
    sampled = samples.read(connection, live, new, amount, backend) if amount else samples.NO_SAMPLES
    progress("diff", 4, _STEPS)
    checked = check(limits, _found(pairs, clusters), _wholes(pairs, clusters))
    return Difference(
        collection=collection,
        profile=live.profile,
        live=_compared(live),
        new=_compared(new),
        recipe=differing_keys(live.recipe, new.recipe),
        documents=documents,
        pairs=pairs,
        clusters=clusters,
        samples=sampled,
        limits=checked,
        exceeded=any(one.exceeded for one in checked),
        waiting=_count_waiting(connection, live, new),
        seconds=round(time.monotonic() - began, 3),
    )


def differing_keys(live: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The keys of two recipes that differ, by section.key, as (live, new); None for one that is not there."""
    before, after = _flat(live), _flat(new)
    names = [*before, *(name for name in after if name not in before)]
    return {
        name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    }


def _flat(recipe: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in recipe.items():
        flat |= (
            {f"{name}.{key}": one for key, one in value.items()}
            if isinstance(value, Mapping)
            else {name: value}
        )
    return flat


def _count_pairs(connection: Connection, both: Both) -> PairCounts:
    found = diffs.count_pairs(connection, both)
    gained, lost = found.new - found.common, found.live - found.common
    counts = (gained, lost, found.rescored)
    shares = (_share(count, found.live) for count in counts)
    return PairCounts(found.live, found.new, found.common, *counts, *shares)


def _count_clusters(connection: Connection, both: Both) -> ClusterCounts:
    found = diffs.count_clusters(connection, both)
    shares = (_share(count, found.live) for count in (found.merged, found.split))
    return ClusterCounts(*asdict(found).values(), *shares)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _found(pairs: PairCounts, clusters: ClusterCounts) -> dict[str, int]:
    return {
        "lost": pairs.lost,
        "gained": pairs.gained,
        "rescored": pairs.rescored,
        "merged": clusters.merged,
        "split": clusters.split,
    }


def _wholes(pairs: PairCounts, clusters: ClusterCounts) -> dict[str, int]:
    of_pairs = dict.fromkeys(("lost", "gained", "rescored"), pairs.live)
    return of_pairs | dict.fromkeys(("merged", "split"), clusters.live)


def _compared(one: Generation) -> Compared:
    return Compared(one.generation_id, one.state, one.fingerprint, one.bands, one.rows, one.created_at)


def _count_waiting(connection: Connection, live: Generation, new: Generation) -> Waiting:
    (before, before_aside), (after, after_aside) = (
        queue.count_work(connection, one.leaves) for one in (live, new)
    )
    changes = backlog.count_changes(connection, live.collection_id)
    return Waiting(before, after, before_aside, after_aside, changes)
