"""Forgetting a person's text: documents leave every place that holds something of them, at once and by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.readers.output import open_output
from nearsim_db.readers.rejects import RejectLines, split_rejects
from nearsim_db.records import CollectionId, GenerationId
from nearsim_db.store import catalog, events, lookup_requests, purges, signatures, verdicts
from nearsim_db.store.catalog import Generation
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import again_after_conflicts
from nearsim_db.store.driver.locks import Lock, hold_lock, try_lock
from nearsim_db.store.purges import Traces
from nearsim_db.store.work import queue
from nearsim_db.store.work.queue import STAGES, WHOLE

Ids = NDArray[np.int64]
FindContext = Callable[[Generation], Context | None]

# The link round takes its lock before its work rows, so these go last.
_BEFORE_LINK = [stage for stage in STAGES if stage != "link"]


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge removed, and from where.

    `deleted` were documents; `not_found` were neither that nor in a reject file. `generations` are those that have
    tables, each with the rows that it held. `later` are being built beside another right now: what they hold goes when
    they have caught up, or with them. `changes` include the notes of the deletion itself. `probes` are all that the
    collection had, as any of them may have asked about such a text. `events` said how similar they were to others.
    """

    deleted: list[str]
    not_found: list[str]
    generations: list[tuple[Generation, Traces]]
    later: list[Generation]
    work: int
    changes: int
    probes: int
    events: int
    verdicts: int
    rejects: list[tuple[Path, int]]
    caches_emptied_at: datetime


@dataclass(slots=True)
class _Struck:
    doc_ids: dict[str, int]
    traces: dict[GenerationId, tuple[Generation, Traces]]
    later: list[Generation]
    work: int
    changes: int
    probes: int
    events: int
    verdicts: int
    at: datetime

    def unbuilt(self) -> set[GenerationId]:
        """First builds: they are short of nothing but time, and what was purged must not come to answer."""
        return {id for id, (generation, _) in self.traces.items() if generation.is_first_build}

    def add(self, after: "_Struck") -> None:
        """Take over what a later transaction found."""
        self.traces |= after.traces
        self.later += after.later
        self.work += after.work
        self.events += after.events


def purge(
    engine: Engine,
    collection_id: CollectionId,
    external_ids: Sequence[str],
    reject_files: Sequence[Path],
    find_context: FindContext,
    finish_builds: Callable[[], None],
) -> Purged:
    """Forget documents of a collection, by external id.

    All that is in the database goes in one transaction, but for generations that are being built: the first of a
    profile is finished first, others lose it later. Until those that were begun meanwhile are seen to, the deletion
    stays noted. `find_context` gives None for a generation that this code cannot
    reproduce; it loses the rows all the same.
    Raises InputError, before anything is done, where a file is no reject file.
    """
    wanted = set(external_ids)
    in_rejects = {path: split_rejects(path, wanted) for path in reject_files}
    with engine.connect() as connection:
        struck = again_after_conflicts(
            connection, partial(_strike, connection, collection_id, sorted(wanted), find_context)
        )
        begun = again_after_conflicts(
            connection, partial(_strike_begun, connection, collection_id, struck, find_context)
        )
        struck.add(begun)
        for path, found in in_rejects.items():
            _clean(path, found)
        if struck.unbuilt():
            finish_builds()
            built = again_after_conflicts(
                connection, partial(_strike_built, connection, collection_id, struck, find_context)
            )
            struck.add(built)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        purges.vacuum(connection, [generation.leaves for generation, _ in struck.traces.values()])
    told = {external_id for found in in_rejects.values() for external_id in found.external_ids}
    return Purged(
        sorted(struck.doc_ids),
        sorted(wanted - struck.doc_ids.keys() - told),
        list(struck.traces.values()),
        struck.later,
        struck.work,
        struck.changes,
        struck.probes,
        struck.events,
        struck.verdicts,
        [(path, found.removed) for path, found in in_rejects.items()],
        struck.at,
    )


def _strike(
    connection: Connection,
    collection_id: CollectionId,
    external_ids: Sequence[str],
    find_context: FindContext,
) -> _Struck:
    """One transaction. What others store at the same time is waited for; what they have read only they cannot store,
    because their work row is gone, or with it the signature that a pair needs."""
    doc_ids = purges.delete_documents(connection, collection_id, external_ids)
    ids = np.sort(np.array(list(doc_ids.values()), np.int64))
    changes = purges.delete_changes(connection, ids)
    generations = catalog.list_generations(connection, collection_id)
    work = sum(purges.delete_work(connection, one.leaves, ids, _BEFORE_LINK) for one in generations)
    struck = _Struck(doc_ids, {}, [], work, changes, 0, 0, 0, datetime.min)
    for generation in generations:
        _strike_generation(connection, generation, ids, struck, find_context)
    struck.probes = lookup_requests.drop_all(connection, collection_id)
    # Under the locks of all generations: nobody can find another pair of them. That they are gone is told at commit.
    struck.events = events.purge_events(connection, collection_id, ids)
    _strike_verdicts(connection, ids, struck)
    struck.at = purges.note_purge(connection, collection_id)
    # A generation that was committed after they were listed is built from what was there before this is committed.
    purges.note_deleted(connection, collection_id, ids)
    connection.commit()
    return struck


def _strike_begun(
    connection: Connection, collection_id: CollectionId, before: _Struck, find_context: FindContext
) -> _Struck:
    """Another transaction, for generations that were begun during the first; then nobody has to be told any more."""
    ids = np.sort(np.array(list(before.doc_ids.values()), np.int64))
    struck = _Struck(before.doc_ids, {}, [], 0, 0, 0, 0, 0, before.at)
    purges.delete_changes(connection, ids)
    queued = before.unbuilt() | {one.generation_id for one in before.later}
    for generation in catalog.list_generations(connection, collection_id):
        id = generation.generation_id
        if id not in before.traces and id not in queued:
            _strike_generation(connection, generation, ids, struck, find_context)
        elif id not in queued:
            # What the note of the deletion was made into meanwhile.
            purges.delete_work(connection, generation.leaves, ids, _BEFORE_LINK)
    struck.events = events.purge_events(connection, collection_id, ids)
    connection.commit()
    return struck


def _strike_verdicts(connection: Connection, ids: Ids, struck: _Struck) -> None:
    """After the clusters, which are put right by what is known to have parted them. What is being built may have been
    linked already: that is done once more."""
    struck.verdicts, was_vetoed = verdicts.purge_verdicts(connection, ids)
    unfinished = [generation for generation, _ in struck.traces.values() if _is_unfinished(generation)]
    for generation in unfinished + struck.later:
        if was_vetoed:
            queue.queue_work(connection, generation.leaves, "link", [WHOLE])


def _strike_built(
    connection: Connection, collection_id: CollectionId, before: _Struck, find_context: FindContext
) -> _Struck:
    """Another transaction, for generations that were being built in the first."""
    ids = np.sort(np.array(list(before.doc_ids.values()), np.int64))
    struck = _Struck(before.doc_ids, {}, [], 0, 0, 0, 0, 0, before.at)
    for generation in catalog.list_generations(connection, collection_id):
        if generation.generation_id in before.unbuilt():
            struck.work += purges.delete_work(connection, generation.leaves, ids, _BEFORE_LINK)
            _strike_generation(connection, generation, ids, struck, find_context)
    struck.events = events.purge_events(connection, collection_id, ids)
    connection.commit()
    return struck


def _strike_generation(
    connection: Connection, generation: Generation, ids: Ids, struck: _Struck, find_context: FindContext
) -> None:
    id = generation.generation_id
    if generation.is_first_build:
        # Its builder may have read the documents already; what it makes of them is taken out when it is done.
        if purges.have_tables(connection, generation.leaves):
            queue.queue_work(connection, generation.leaves, "sign", ids)
            struck.traces[id] = generation, Traces(0, 0, 0, 0)
        return
    if _is_unfinished(generation) and not try_lock(connection, Lock.REINDEX, id):
        queue.queue_work(connection, generation.leaves, "sign", ids)
        struck.later.append(generation)
        return
    # Who drops it has these locks, too, and who built it may have finished.
    hold_lock(connection, Lock.STORE, id)
    hold_lock(connection, Lock.LINK, id)
    if not purges.have_tables(connection, generation.leaves):
        return
    generation = catalog.reread(connection, generation)
    struck.work += purges.delete_work(connection, generation.leaves, ids, STAGES)
    context = None if generation.state == "abandoned" else find_context(generation)
    if context is None or (_is_unfinished(generation) and generation.stage in ("sign", "bands")):
        # The bands of one that is being built are loaded anew when it is resumed.
        traces = purges.strike_out(connection, generation.leaves, ids)
    else:
        traces = _take_out(connection, context, ids)
    # Taking out queues the clusters around what went, which have been put right, or are not linked yet.
    purges.delete_work(connection, generation.leaves, ids, STAGES)
    struck.traces[id] = generation, traces


def _is_unfinished(generation: Generation) -> bool:
    return generation.state in ("building", "paused") and generation.stage != "done"


def _take_out(connection: Connection, context: Context, ids: Ids) -> Traces:
    """Exactly as a deletion that is followed, and the clusters at once, which else have their queue."""
    family = context.encoder.family
    heads = signatures.read_sketches(connection, context.leaves, ids, family.dtype, family.k)
    keys = context.encoder.band_keys(heads.sketches)
    traces = purges.count_traces(connection, context.leaves, ids, heads.doc_ids, keys)
    steps.store(connection, context, ids.tolist(), steps.sign(context, []))
    if not _is_unfinished(context.generation):
        steps.relink(connection, context, ids.tolist())
    return traces


def _clean(path: Path, lines: RejectLines) -> None:
    if lines.removed:
        with open_output(path) as stream:
            stream.writelines(lines.kept)
