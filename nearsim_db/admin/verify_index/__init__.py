"""Verify a generation, and repair it on request: in place, or by building another generation beside it."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearsim_db.admin.reindex import Reindex, select
from nearsim_db.admin.verify_index.check import IndexChecker
from nearsim_db.admin.verify_index.findings import (
    MAX_RECORDED,
    NOTHING_CHECKED,
    Fault,
    FoundFaults,
    IndexCheck,
    Kind,
)
from nearsim_db.errors import ConflictError, DatabaseError, EmptyIndexError
from nearsim_db.indexing import drop_generation
from nearsim_db.indexing.catch_up import CatchUp
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.indexing.queue.dispatch import dispatch_changes
from nearsim_db.records import DEFAULT, GenerationId, Progress, silent
from nearsim_db.search import live_generation
from nearsim_db.store.attached import attachments
from nearsim_db.store.citus import placement
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import retry_conflicts, translate_errors
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.driver.statements import SHARED_BY_ALL
from nearsim_db.store.generations import index_checks, partitions
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.generations.generation_states import MAINTAINED
from nearsim_db.store.work import queue

__all__ = ["DEFAULT_SAMPLE", "Fault", "IndexCheck", "Kind", "VerifyResult", "verify_index"]

DEFAULT_SAMPLE = 1_000

_MAX_REPAIR_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """The checks before and after a repair."""

    collection: str
    profile: str
    found: IndexCheck  # the check before any repair
    after: IndexCheck | None = None  # the check after the repair, None if nothing was repaired
    rebuilt: GenerationId | None = None  # the generation that was built to replace the faulty one

    @property
    def is_repaired(self) -> bool:
        """Whether faults were found and all of them are repaired."""
        return bool(self.found.faults) and self.after is not None and not self.after.faults

    @property
    def is_sound(self) -> bool:
        """Whether no faults were found, or all of them are repaired."""
        return not self.found.faults or self.is_repaired


def verify_index(
    database: Database,
    collection: str = DEFAULT,
    profile: str | None = None,
    *,
    generation: int | None = None,
    sample: int | None = DEFAULT_SAMPLE,
    repair: bool = False,
    progress: Progress = silent,
    warn: Callable[[str], None] = lambda message: None,
    seed: int | None = None,
) -> VerifyResult:
    """Compare the live index of a profile, or a built generation, with the documents; other sessions may write.

    `sample` is the number of documents whose signatures, band rows, pairs and clusters are checked; they are drawn by
    `seed`. If it is None, all documents are checked, and also that nothing else is stored. With `repair`, faults are
    repaired or the index is rebuilt, and it is checked again. A collection without documents has nothing to check.

    Raises NotFoundError if nothing is built, and ConflictError if the index cannot be verified or repaired.
    """
    try:
        chosen = _choose(database, collection, profile, generation)
    except EmptyIndexError:
        return VerifyResult(collection, profile or DEFAULT, NOTHING_CHECKED)
    with ContextFactory.open(database.settings, warn) as contexts:
        seed = random.randrange(1 << 31) if seed is None else seed
        checker = IndexChecker(database, contexts, progress, sample, seed)
        before, findings = checker.check(chosen)
        if repair and before.faults:
            with database.transaction() as connection:
                attachments.refuse_lost_texts(connection, chosen.collection_id)
            return _Repair(database, collection, chosen, checker, before).run(findings)
        return VerifyResult(collection, chosen.profile, before)


def _choose(
    database: Database, collection: str, profile: str | None, generation_id: int | None
) -> Generation:
    """Return the live generation of a profile, or the built generation with this id."""
    with database.transaction() as connection:
        if generation_id is None:
            return live_generation.find_live(connection, collection, profile)
        generations = select.of_profile(connection, collection, profile)
    chosen = select.by_id(generations, generation_id)
    if chosen.stage != "done" or chosen.state == "abandoned":
        raise ConflictError(
            f"generation {generation_id} is {chosen.state} (stage {chosen.stage}); only a built one can be verified"
        )
    return chosen


@dataclass(frozen=True, slots=True)
class _Repair:
    """The repair of a generation whose check found faults."""

    database: Database
    collection: str
    generation: Generation
    checker: IndexChecker
    before: IndexCheck

    def run(self, findings: FoundFaults) -> VerifyResult:
        """Repair until no faults are left, or until further attempts do not help."""
        after = self.before
        self._refuse_missing_shared_table()

        # Repair tables that other generations need as well before this generation.
        if shared := self._damaged_shared(findings):
            self._rebuild_indexes(shared)
            after, findings = self.checker.check(self.generation)

        # All generations share the tables of pairs and cluster members, so a rebuilt generation would be damaged too.
        leaves = self.generation.leaves
        if damaged := [name for name in SHARED_BY_ALL if leaves.name(name) in findings.damaged_tables]:
            self._restore_shared(damaged)
            after, findings = self.checker.check(self.generation)

        for _ in range(_MAX_REPAIR_ATTEMPTS):
            if not after.faults:
                break
            if is_beyond_repair(findings):
                return self._rebuild("own" if self._damaged_shared(findings) else None)
            self._repair_in_place(findings)
            after, findings = self.checker.check(self.generation)
        return VerifyResult(self.collection, self.generation.profile, self.before, after)

    def _refuse_missing_shared_table(self) -> None:
        """Raise ConflictError if a table that this generation shares with others is missing."""
        leaves = self.generation.leaves
        shared = set(map(leaves.name, leaves.shared))
        for fault in self.before.faults:
            if fault.kind == "missing_table" and fault.table in shared:
                raise ConflictError(
                    f"the table nearsim_index.{fault.table}, which the indexes of many collections share, does not "
                    "exist, and no index can be repaired without it: restore the database from a backup, or export "
                    "the documents (nearsim export --keep all) into a new database"
                )

    def _damaged_shared(self, findings: FoundFaults) -> list[str]:
        """Return the damaged tables that other generations need as well, including tables with a damaged shard."""
        leaves, damaged = self.generation.leaves, findings.damaged_tables
        shared = map(leaves.name, leaves.shared)
        return [
            table
            for table in (*shared, index_checks.COPIES)
            if any(name == table or name.startswith(f"{table}_") for name in damaged)
        ]

    def _rebuild_indexes(self, tables: list[str]) -> None:
        """Rebuild the indexes of shared tables; for distributed band rows, on all shards."""
        leaves = self.generation.leaves
        try:
            with translate_errors(), self.database.engine.connect(autocommit=True) as connection:
                if leaves.distributed:
                    placement.restore_shards(connection, leaves)
                for table in tables:
                    if table == index_checks.COPIES:
                        index_checks.restore_copies(connection)
                    else:
                        index_checks.rebuild_indexes(connection, table)
        except DatabaseError as error:
            self.checker.contexts.warn(f"indexes of {', '.join(tables)} cannot be rebuilt: {error}")

    def _restore_shared(self, parents: list[str]) -> None:
        """Rebuild the shared tables of pairs or cluster members from their readable rows, and compute missing rows."""
        with translate_errors(), self.database.engine.connect() as connection:
            for parent in parents:
                lacks_rows = retry_conflicts(connection, index_checks.restore_shared, connection, parent)
                connection.commit()
                if lacks_rows:
                    self.checker.contexts.warn(
                        f"not all rows of nearsim_index.{parent}_shared could be read; the missing rows are computed "
                        "again, in other collections by the next command or worker"
                    )
        CatchUp(self.database, self.checker.contexts, self.checker.progress).catch_up(self.generation)

    def _repair_in_place(self, findings: FoundFaults) -> None:
        generation = self.generation
        if generation.state not in MAINTAINED:
            raise ConflictError(
                f"generation {generation.generation_id} is {generation.state}, so no work is done for it; "
                f"first run: {generation.advice('reindex resume')}"
            )
        contexts = self.checker.contexts
        repair_in_place(self.database, contexts.make(generation), findings)
        CatchUp(self.database, contexts, self.checker.progress).catch_up(generation)

    def _rebuild(self, tables: partitions.Tables | None) -> VerifyResult:
        """Build a generation with the same recipe, and promote it if a check finds no faults in it.

        `tables` is the kind of its tables, None for the kind that suits the collection.
        """
        generation, warn = self.generation, self.checker.contexts.warn
        if generation.state != "live":
            drop = generation.advice("reindex drop", "--generation", str(generation.generation_id))
            raise ConflictError(
                f"generation {generation.generation_id} is {generation.state} and cannot be repaired: drop it "
                f"({drop}), and build another: {generation.advice('reindex start')}"
            )
        if generation.distributed:
            self._refuse_missing_shards()

        reindex = Reindex(self.database, self.collection, generation.profile, self.checker.progress, warn)
        rebuilt = reindex.start(tables=tables)
        after, _ = self.checker.check(rebuilt)
        if after.faults:
            warn(f"generation {rebuilt.generation_id} was rebuilt and has faults too; it was not promoted")
        else:
            reindex.promote()
            if not drop_generation.drop(self.database.engine, generation).finished:
                warn(f"generation {generation.generation_id} is still being read; a worker drops it later")
        return VerifyResult(self.collection, generation.profile, self.before, after, rebuilt.generation_id)

    def _refuse_missing_shards(self) -> None:
        """Raise ConflictError if a shard of the parent of all band tables is missing."""
        with translate_errors(), self.database.engine.connect() as connection:
            for shard in placement.read_shards(connection):
                if not shard.is_there:
                    raise ConflictError(
                        f"the shard nearsim.{shard.name} is missing on {shard.node}, which no index can be built "
                        "without: restore this node from a backup, or use a new database"
                    )


# Up to this number, differences are repaired in place, whatever the size of the index. A larger number is repaired in
# place only if at most a tenth of what was checked differs.
_MAX_DIFFERENCES_IN_PLACE = 100
_MIN_CHECKED_PER_DIFFERENCE = 10


def is_beyond_repair(findings: FoundFaults) -> bool:
    """Whether tables are damaged, or there are so many differences that a rebuild is faster."""
    return findings.is_damaged or any(
        differences >= MAX_RECORDED
        or (
            differences > _MAX_DIFFERENCES_IN_PLACE
            and differences * _MIN_CHECKED_PER_DIFFERENCE > findings.checked[kind]
        )
        for kind, differences in findings.differing.items()
    )


def repair_in_place(database: Database, context: Context, findings: FoundFaults) -> None:
    """Remove the faulty rows, and queue the work that creates them again."""
    with translate_errors(), database.engine.connect() as connection:
        for repair in (_repair_documents, _repair_pairs, _repair_clusters):
            retry_conflicts(connection, repair, connection, context, findings)
            connection.commit()
        dispatch_changes(database.engine)


def _repair_documents(connection: Connection, context: Context, findings: FoundFaults) -> None:
    """Sign faulty documents again, and all documents that share a head or a digest with them and may become heads."""
    if not findings.documents:
        return

    # Heads are removed, so no other process may add heads at the same time.
    take_transaction_lock(connection, Lock.STORE, context.generation.generation_id)
    faulty = sorted(findings.documents)
    tables = context.tables(connection)
    removed = sorted({*faulty, *tables.checks.read_families(faulty)})
    tables.pairs.delete_of(np.array(removed, np.int64))
    tables.signatures.delete(removed)
    buckets = tables.checks.delete_all_bands(removed)

    # A document that takes the place of a removed anchor has to search the whole bucket.
    anchors, full = tables.buckets.read_anchors(context.bucket_limit, buckets)
    full_buckets = set(full.view(np.int64).tolist())
    searching = sorted({doc_id for bucket, doc_id in anchors if bucket in full_buckets})
    tables.work.add("search", searching)
    tables.work.add("sign", removed)
    tables.work.add("link", removed)


def _repair_pairs(connection: Connection, context: Context, findings: FoundFaults) -> None:
    """Delete false pairs, and queue the documents of false and of missing pairs to be searched again."""
    if not findings.missing_pairs and not findings.false_pairs:
        return

    take_transaction_lock(connection, Lock.STORE, context.generation.generation_id, shared=True)
    false = np.array(findings.false_pairs, np.int64).reshape(-1, 2)
    tables = context.tables(connection)
    tables.checks.delete_pairs(false)
    tables.work.add("link", np.unique(false))
    missing = np.array(findings.missing_pairs, np.int64).reshape(-1, 2)
    tables.work.add("search", np.union1d(false, missing))


def _repair_clusters(connection: Connection, context: Context, findings: FoundFaults) -> None:
    if findings.has_wrong_clusters:
        context.tables(connection).work.add("link", [queue.WHOLE_GENERATION])
