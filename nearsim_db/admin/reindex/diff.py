"""The differences between a generation and the live one, read in one snapshot."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from nearsim_db.admin.reindex import samples, select
from nearsim_db.admin.reindex.limits import CheckedLimit, Limits, check_limits
from nearsim_db.admin.reindex.samples import Samples
from nearsim_db.errors import ConflictError
from nearsim_db.records import Progress, silent
from nearsim_db.similarity.recipe.conversion import differing_keys
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations.diffs import ClusterCounts, ComparedTables, DocumentTotals, PairCounts
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.work import backlog

_PROGRESS_STEPS = 4


@dataclass(frozen=True, slots=True)
class ComparedGeneration:
    """One of the two generations of a comparison."""

    generation: int
    state: str
    fingerprint: str
    bands: int
    rows: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ComparedDocuments:
    """The numbers of documents of both generations."""

    live: DocumentTotals
    new: DocumentTotals


@dataclass(frozen=True, slots=True)
class Waiting:
    """Work that is not done yet and may explain differences."""

    live: int  # work queued for the live generation
    new: int  # work queued for the new generation
    live_set_aside: int
    new_set_aside: int
    changes: int  # changes that are not dispatched yet

    @property
    def anything(self) -> bool:
        """Whether any such work exists."""
        return any((self.live, self.new, self.live_set_aside, self.new_set_aside, self.changes))


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences between a generation and the live one."""

    collection: str
    profile: str
    live: ComparedGeneration
    new: ComparedGeneration
    recipe: dict[str, tuple[Any, Any]]  # for each key that differs, the live and the new value
    documents: ComparedDocuments
    pairs: PairCounts
    clusters: ClusterCounts
    samples: Samples
    limits: tuple[CheckedLimit, ...]
    exceeded: bool
    waiting: Waiting
    seconds: float


def choose(
    connection: Connection, generations: Sequence[Generation], generation_id: int | None
) -> tuple[Generation, Generation]:
    """Return the live generation, and the generation to compare with it, which is the pending one by default.

    Raises ConflictError if the two cannot be compared.
    """
    live = select.live(generations)
    new = (
        select.comparable(generations) if generation_id is None else select.by_id(generations, generation_id)
    )
    if new.generation_id == live.generation_id:
        raise ConflictError(f"generation {generation_id} is the live one; choose another to compare it with")
    if new.state == "abandoned":
        raise ConflictError(
            f"generation {new.generation_id} was abandoned and is no longer updated; choose another"
        )
    select.refuse_unbuilt(connection, new)
    return live, new


def compare(
    connection: Connection,
    live: Generation,
    new: Generation,
    *,
    samples_per_kind: int,
    limits: Limits,
    backend: str | None = None,
    progress: Progress = silent,
) -> Difference:
    """Count the differences and draw samples of each kind; `connection` must be in a snapshot."""
    began = time.monotonic()
    both = ComparedTables(live.tables(connection), new.tables(connection))

    progress("diff", 0, _PROGRESS_STEPS)
    documents = ComparedDocuments(both.live.diff.count_documents(), both.new.diff.count_documents())
    progress("diff", 1, _PROGRESS_STEPS)
    pairs = both.count_pairs()
    progress("diff", 2, _PROGRESS_STEPS)
    clusters = both.count_clusters()
    progress("diff", 3, _PROGRESS_STEPS)
    drawn = samples.read_samples(connection, live, new, samples_per_kind, backend)
    progress("diff", 4, _PROGRESS_STEPS)

    # Limits refer to the numbers of pairs or clusters of the live generation.
    live_counts = dict.fromkeys(("lost", "gained", "rescored"), pairs.live)
    live_counts |= dict.fromkeys(("merged", "split"), clusters.live)
    checked = check_limits(limits, asdict(clusters) | asdict(pairs), live_counts)

    return Difference(
        collection=live.collection,
        profile=live.profile,
        live=_describe(live),
        new=_describe(new),
        recipe=differing_keys(live.recipe, new.recipe),
        documents=documents,
        pairs=pairs,
        clusters=clusters,
        samples=drawn,
        limits=checked,
        exceeded=any(limit.exceeded for limit in checked),
        waiting=_count_waiting(connection, live, new),
        seconds=round(time.monotonic() - began, 3),
    )


def _describe(generation: Generation) -> ComparedGeneration:
    return ComparedGeneration(
        generation.generation_id,
        generation.state,
        generation.fingerprint,
        generation.bands,
        generation.rows,
        generation.created_at,
    )


def _count_waiting(connection: Connection, live: Generation, new: Generation) -> Waiting:
    live_work, live_aside = live.tables(connection).work.count()
    new_work, new_aside = new.tables(connection).work.count()
    changes = backlog.count_changes(connection, live.collection_id)
    return Waiting(live_work, new_work, live_aside, new_aside, changes)
