"""Purge documents: delete them at once, by external id, from every place that stores their data.

An ordinary deletion leaves the removal from indexes to workers, and keeps events and verdicts. A purge removes
everything before it returns. The only exception are generations that another process is building: they remove the
documents before they answer queries.
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

# The stage link takes its lock before it locks its work rows. So a purge deletes link work last, under that lock.
_BEFORE_LINK = [stage for stage in STAGES if stage != "link"]


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge removed, and from where."""

    deleted: list[str]  # external ids of the deleted documents
    not_found: list[str]  # external ids that neither a document nor a reject file had
    generations: list[
        tuple[Generation, Traces]
    ]  # the purged generations, and the number of rows removed from each
    later: list[
        Generation
    ]  # generations being built beside a live one; they remove the documents as they catch up
    work: int  # rows of the work queue
    changes: int  # captured changes, the deletion itself included
    probes: int  # all probes of the collection, because any of them may contain the text of a purged document
    events: int  # events that named the documents
    verdicts: int  # verdicts on the documents
    rejects: list[tuple[Path, int]]  # the number of records removed from each reject file
    caches_emptied_at: (
        datetime  # the time of the purge; processes empty their caches of features because of it
    )


@dataclass(slots=True)
class _Removed:
    """What one or several transactions of a purge removed. The fields have the same meaning as in `Purged`."""

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
        """The generations that are first builds: they are finished, and purged again before they answer queries."""
        return {
            generation_id
            for generation_id, (generation, _) in self.traces.items()
            if generation.is_first_build
        }

    @property
    def queued(self) -> set[GenerationId]:
        """The generations in whose work queue the deletion waits."""
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
    finished and then purged, and a reindex removes the documents later. Rows are also deleted from generations that
    this version cannot reproduce. Files that killed processes left behind are deleted entirely: unfinished files beside
    reject files and in the working directory, and copies of inputs. Raises InputError for a file that is not a reject
    file, before anything is deleted.
    """
    wanted = set(external_ids)
    rejects = {path: split_rejects(path, wanted) for path in reject_files}

    with engine.connect() as connection:
        removed = retry_conflicts(
            connection, _purge_collection, connection, collection_id, sorted(wanted), contexts
        )
        # The deletion stays captured as a change until generations that were begun in the meantime are purged too.
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

    # Remove the last copies of the data: dead rows, and files of killed processes.
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
    """Delete documents and all data derived from them in one transaction.

    The transaction waits for workers that are storing signatures or pairs. A worker that has only read a document
    cannot store anything of it afterwards, because the work row, or the signature that a pair needs, is deleted.
    """
    removed = _Removed(document_writes.delete_documents(connection, collection_id, external_ids))
    removed.changes = purges.delete_changes(connection, removed.ids)
    existing = generation_rows.list_generations(connection, collection_id)
    _purge_generations(connection, collection_id, existing, removed.ids, removed, contexts)

    removed.probes = lookup_requests.drop_all(connection, collection_id)
    insertions.drop_of(connection, collection_id, external_ids)
    _purge_verdicts(connection, removed)
    removed.at = purges.record_purge(connection, collection_id)

    # A generation that is created after the others were listed may be built from documents that this transaction
    # deletes. The captured deletions make it remove them.
    purges.capture_deletes(connection, collection_id, removed.ids)
    connection.commit()
    return removed


def _purge_begun(
    connection: Connection, collection_id: CollectionId, before: _Removed, contexts: ContextFactory
) -> _Removed:
    """Purge generations that were begun during the first transaction, and delete the captured deletions."""
    removed, ids = _Removed(), before.ids
    purges.delete_changes(connection, ids)

    handled = before.traces.keys() | before.queued
    existing = generation_rows.list_generations(connection, collection_id)
    begun = [generation for generation in existing if generation.generation_id not in handled]
    _purge_generations(connection, collection_id, begun, ids, removed, contexts)

    # The captured deletions may have been dispatched in the meantime.
    for generation in existing:
        if generation.generation_id in before.traces.keys() - before.queued:
            generation.tables(connection).removals.delete_work(ids, _BEFORE_LINK)
    connection.commit()
    return removed


def _purge_built(
    connection: Connection, collection_id: CollectionId, before: _Removed, contexts: ContextFactory
) -> _Removed:
    """Purge generations whose first build was unfinished in the first transaction, and is finished now."""
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
    """Purge documents and their events from generations, and add the counts to `removed`."""
    for generation in chosen:
        removed.work += generation.tables(connection).removals.delete_work(ids, _BEFORE_LINK)
    for generation in chosen:
        _purge_generation(connection, generation, ids, removed, contexts)

    # The locks of these generations, taken above, keep workers from finding further pairs of the documents. The events
    # of the deletion itself are written at commit.
    removed.events += events.purge_events(connection, collection_id, ids)


def _purge_verdicts(connection: Connection, removed: _Removed) -> None:
    """Delete verdicts, after the clusters were updated under the vetoes.

    A generation that is being built may have formed its clusters already; after a veto it forms them again.
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
        # The builder may have read the documents already. Rows that it stores for them are removed when it is done.
        if tables.exist():
            tables.work.add("sign", ids)
            removed.traces[generation_id] = generation, Traces(0, 0, 0, 0)
        return
    if _is_unfinished(generation) and not try_transaction_lock(connection, Lock.REINDEX, generation_id):
        tables.work.add("sign", ids)
        removed.later.append(generation)
        return

    # Another process may drop the generation, or finish its build, before these locks are granted. So look again.
    take_transaction_lock(connection, Lock.STORE, generation_id)
    take_transaction_lock(connection, Lock.LINK, generation_id)
    if not tables.exist():
        return

    generation = generation_rows.reread(connection, generation)
    removed.work += tables.removals.delete_work(ids, STAGES)
    context = None if generation.state == "abandoned" else contexts.make_if_reproducible(generation)
    if context is None or (_is_unfinished(generation) and generation.stage in ("sign", "bands")):
        # A build that is resumed at one of these stages loads all band rows again.
        if generation.stage == "bands":
            tables.slices.delete()
        traces = tables.removals.delete_document_rows(ids)
    else:
        traces = _remove_exactly(connection, context, ids)

    # The removal queued work for the clusters around the documents. It is not needed: the clusters are updated already,
    # or not formed yet.
    tables.removals.delete_work(ids, STAGES)
    removed.traces[generation_id] = generation, traces


def _is_unfinished(generation: Generation) -> bool:
    return generation.state in ("building", "paused") and generation.stage != "done"


def _remove_exactly(connection: Connection, context: Context, ids: Ints) -> Traces:
    """Remove documents as a worker does after a deletion, but update the clusters at once; return the removed rows."""
    tables = context.tables(connection)
    heads = tables.signatures.read_sketches(ids, context.encoder.family)
    keys = context.encoder.band_keys(heads.sketches)
    traces = tables.removals.count_traces(ids, heads.doc_ids, keys)

    steps.store_signatures(connection, context, ids.tolist(), steps.sign_documents(context, []))
    if not _is_unfinished(context.generation):
        steps.update_clusters(connection, context, ids.tolist())
    return traces
