"""Purge documents: delete them at once, by external id, from every place that stores their data.

An ordinary deletion leaves the work to workers and keeps events and verdicts. A purge removes all of it before it
returns, except from generations that another process is building: these drop the documents before they answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np

from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.readers.leftovers import sweep_copies, sweep_parts
from nearsim_db.readers.output import open_output
from nearsim_db.readers.rejects import split_rejects
from nearsim_db.records import CollectionId, GenerationId
from nearsim_db.similarity.arrays import Ints
from nearsim_db.store.clusters import events
from nearsim_db.store.documents import document_writes, purges
from nearsim_db.store.documents.purges import Traces
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import retry_conflicts
from nearsim_db.store.driver.locks import Lock, take_transaction_lock, try_transaction_lock
from nearsim_db.store.generations import generation_rows
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.signatures import insertions, lookup_requests
from nearsim_db.store.work.queue import STAGES, WHOLE_GENERATION

# Linking takes its lock before its work rows, so this order does too: link work goes last.
_BEFORE_LINK = [stage for stage in STAGES if stage != "link"]


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge removed, and from where."""

    deleted: list[str]  # external ids of documents
    not_found: list[str]  # external ids that neither a document nor a reject file had
    generations: list[tuple[Generation, Traces]]  # with the rows that each had
    later: list[Generation]  # being built beside a live one; they drop the documents as they catch up
    work: int  # rows of work
    changes: int  # captured changes, the deletion itself included
    probes: int  # all of the collection, as any of them may hold such a text
    events: int  # events that named the documents
    verdicts: int
    rejects: list[tuple[Path, int]]  # records by reject file
    caches_emptied_at: datetime  # the time of the purge, on which processes drop cached features


@dataclass(slots=True)
class _Removed:
    """What one transaction removed, or several; fields as in `Purged`."""

    doc_ids: dict[str, int] = field(default_factory=dict)  # by external id
    traces: dict[GenerationId, tuple[Generation, Traces]] = field(default_factory=dict)
    later: list[Generation] = field(default_factory=list)
    work: int = 0
    changes: int = 0
    probes: int = 0
    events: int = 0
    verdicts: int = 0
    at: datetime = datetime.min

    @property
    def ids(self) -> Ints:
        """The doc_ids, sorted."""
        return np.sort(np.array(list(self.doc_ids.values()), np.int64))

    @property
    def first_builds(self) -> set[GenerationId]:
        """The generations that are first builds: they are finished, and purged once more before they answer."""
        return {
            generation_id
            for generation_id, (generation, _) in self.traces.items()
            if generation.is_first_build
        }

    @property
    def queued(self) -> set[GenerationId]:
        """The generations in whose queue the deletion waits."""
        return self.first_builds | {generation.generation_id for generation in self.later}

    def add(self, later: "_Removed") -> None:
        """Add what a later transaction removed."""
        self.traces |= later.traces
        self.later += later.later
        self.work += later.work
        self.events += later.events


def purge(
    engine: Engine,
    collection_id: CollectionId,
    external_ids: Sequence[str],
    reject_files: Sequence[Path],
    contexts: ContextFactory,
    finish_builds: Callable[[], None],
) -> Purged:
    """Purge documents of a collection, by external id.

    One transaction deletes everything in the database, except from generations that are being built: a first build is
    finished and then purged, a reindex drops the documents later. Generations that this version cannot reproduce lose
    the rows as well. Unfinished files of killed processes beside reject files and in the working directory, and their
    copies of inputs, are deleted whole. Raises InputError, before anything is done, for a file that is not a reject
    file.
    """
    wanted = set(external_ids)
    rejects = {path: split_rejects(path, wanted) for path in reject_files}

    with engine.connect() as connection:
        removed = retry_conflicts(
            connection, _purge_collection, connection, collection_id, sorted(wanted), contexts
        )
        # Until generations begun meanwhile are purged too, the deletion stays captured as a change.
        removed.add(retry_conflicts(connection, _purge_begun, connection, collection_id, removed, contexts))

        for path, lines in rejects.items():
            if lines.removed:
                with open_output(path) as stream:
                    stream.writelines(lines.kept)
        if removed.first_builds:
            finish_builds()
            removed.add(
                retry_conflicts(connection, _purge_built, connection, collection_id, removed, contexts)
            )

    # Free what still holds the data: dead rows, and files of killed processes.
    with engine.connect(autocommit=True) as connection:
        purges.vacuum(connection, [generation.leaves for generation, _ in removed.traces.values()])
    sweep_copies()
    for folder in {Path(), *(path.parent for path in reject_files)}:
        sweep_parts(folder)

    rejected = {external_id for lines in rejects.values() for external_id in lines.external_ids}
    return Purged(
        deleted=sorted(removed.doc_ids),
        not_found=sorted(wanted - removed.doc_ids.keys() - rejected),
        generations=list(removed.traces.values()),
        later=removed.later,
        work=removed.work,
        changes=removed.changes,
        probes=removed.probes,
        events=removed.events,
        verdicts=removed.verdicts,
        rejects=[(path, lines.removed) for path, lines in rejects.items()],
        caches_emptied_at=removed.at,
    )


def _purge_collection(
    connection: Connection, collection_id: CollectionId, external_ids: Sequence[str], contexts: ContextFactory
) -> _Removed:
    """Delete documents and all their derived data in one transaction.

    It waits for workers that are storing. A worker that has only read a document cannot store it afterwards: its work
    row is deleted, or the signature that a pair needs.
    """
    removed = _Removed(document_writes.delete_documents(connection, collection_id, external_ids))
    removed.changes = purges.delete_changes(connection, removed.ids)
    existing = generation_rows.list_generations(connection, collection_id)
    _purge_generations(connection, collection_id, existing, removed.ids, removed, contexts)

    removed.probes = lookup_requests.drop_all(connection, collection_id)
    insertions.drop_of(connection, collection_id, external_ids)
    _purge_verdicts(connection, removed)
    removed.at = purges.record_purge(connection, collection_id)

    # A generation committed after they were listed is built from what existed before this transaction commits.
    purges.capture_deletes(connection, collection_id, removed.ids)
    connection.commit()
    return removed


def _purge_begun(
    connection: Connection, collection_id: CollectionId, before: _Removed, contexts: ContextFactory
) -> _Removed:
    """Purge generations that were begun during the first transaction; then the captured deletion can go too."""
    removed, ids = _Removed(), before.ids
    purges.delete_changes(connection, ids)

    handled = before.traces.keys() | before.queued
    existing = generation_rows.list_generations(connection, collection_id)
    begun = [generation for generation in existing if generation.generation_id not in handled]
    _purge_generations(connection, collection_id, begun, ids, removed, contexts)

    # The captured deletion may have been dispatched meanwhile.
    for generation in existing:
        if generation.generation_id in before.traces.keys() - before.queued:
            generation.tables(connection).removals.delete_work(ids, _BEFORE_LINK)
    connection.commit()
    return removed


def _purge_built(
    connection: Connection, collection_id: CollectionId, before: _Removed, contexts: ContextFactory
) -> _Removed:
    """Purge generations that were first builds in the first transaction and are built now."""
    removed = _Removed()
    existing = generation_rows.list_generations(connection, collection_id)
    built = [generation for generation in existing if generation.generation_id in before.first_builds]
    _purge_generations(connection, collection_id, built, before.ids, removed, contexts)
    connection.commit()
    return removed


def _purge_generations(
    connection: Connection,
    collection_id: CollectionId,
    chosen: Sequence[Generation],
    ids: Ints,
    removed: _Removed,
    contexts: ContextFactory,
) -> None:
    """Purge documents from generations, and their events; add what was removed to `removed`."""
    for generation in chosen:
        removed.work += generation.tables(connection).removals.delete_work(ids, _BEFORE_LINK)
    for generation in chosen:
        _purge_generation(connection, generation, ids, removed, contexts)

    # Under the locks of these generations, so that no worker finds another pair of the documents. The events of the
    # deletion itself are written at commit.
    removed.events += events.purge_events(connection, collection_id, ids)


def _purge_verdicts(connection: Connection, removed: _Removed) -> None:
    """Delete verdicts. The clusters were updated before, by the vetoes that split them.

    A generation that is being built may have linked its clusters already; it links them again.
    """
    removed.verdicts, was_vetoed = purges.purge_verdicts(connection, removed.ids)
    unfinished = [generation for generation, _ in removed.traces.values() if _is_unfinished(generation)]
    for generation in unfinished + removed.later:
        if was_vetoed:
            generation.tables(connection).work.add("link", [WHOLE_GENERATION])


def _purge_generation(
    connection: Connection, generation: Generation, ids: Ints, removed: _Removed, contexts: ContextFactory
) -> None:
    """Purge documents from a generation, or queue their removal if another process is building it."""
    generation_id, tables = generation.generation_id, generation.tables(connection)
    if generation.is_first_build:
        # Its builder may have read the documents already; rows that it stores for them are removed when it is done.
        if tables.exist():
            tables.work.add("sign", ids)
            removed.traces[generation_id] = generation, Traces(0, 0, 0, 0)
        return
    if _is_unfinished(generation) and not try_transaction_lock(connection, Lock.REINDEX, generation_id):
        tables.work.add("sign", ids)
        removed.later.append(generation)
        return

    # Dropping the generation takes these locks too; and its build may have finished before they are granted.
    take_transaction_lock(connection, Lock.STORE, generation_id)
    take_transaction_lock(connection, Lock.LINK, generation_id)
    if not tables.exist():
        return

    generation = generation_rows.reread(connection, generation)
    removed.work += tables.removals.delete_work(ids, STAGES)
    context = None if generation.state == "abandoned" else contexts.make_if_reproducible(generation)
    if context is None or (_is_unfinished(generation) and generation.stage in ("sign", "bands")):
        # A build at these stages loads all bands again when it is resumed.
        if generation.stage == "bands":
            tables.slices.delete()
        traces = tables.removals.delete_document_rows(ids)
    else:
        traces = _remove_exactly(connection, context, ids)

    # Removing them queued the clusters around them, which are updated already, or not linked yet.
    tables.removals.delete_work(ids, STAGES)
    removed.traces[generation_id] = generation, traces


def _is_unfinished(generation: Generation) -> bool:
    return generation.state in ("building", "paused") and generation.stage != "done"


def _remove_exactly(connection: Connection, context: Context, ids: Ints) -> Traces:
    """Remove documents as a worker does after a deletion, but update the clusters at once; count their rows."""
    tables = context.tables(connection)
    heads = tables.signatures.read_sketches(ids, context.encoder.family)
    keys = context.encoder.band_keys(heads.sketches)
    traces = tables.removals.count_traces(ids, heads.doc_ids, keys)

    steps.store_signatures(connection, context, ids.tolist(), steps.sign_documents(context, []))
    if not _is_unfinished(context.generation):
        steps.update_clusters(connection, context, ids.tolist())
    return traces
