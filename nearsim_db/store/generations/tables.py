"""The tables of one generation as an object, which creates, attaches, measures and drops them.

It also gives access to the statements of every subject of the store, such as `signatures` or `pairs`.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from nearsim_db.errors import UnreachableError
from nearsim_db.store.citus import placement
from nearsim_db.store.driver.connection import autocommitting
from nearsim_db.store.driver.driver_errors import corruption_message, retry_conflicts
from nearsim_db.store.driver.statements import (
    INDEX_SCHEMA,
    PARENTS,
    SCHEMA,
    GenerationStatements,
    Leaves,
    statement,
)

if TYPE_CHECKING:
    from nearsim_db.store.clusters.clusters import ClusterTable
    from nearsim_db.store.clusters.reports import ReportQueries
    from nearsim_db.store.documents.exports import ExportQueries
    from nearsim_db.store.documents.purges import PurgedRows
    from nearsim_db.store.generations.diffs import DiffQueries
    from nearsim_db.store.generations.index_checks import IndexChecks
    from nearsim_db.store.pairs.pairs import PairTable
    from nearsim_db.store.query_rows import ShownRows
    from nearsim_db.store.signatures.bands import BandTable
    from nearsim_db.store.signatures.lookups import LookupQueries
    from nearsim_db.store.signatures.neighbours import BucketQueries
    from nearsim_db.store.signatures.signatures import SignatureTable
    from nearsim_db.store.work.build_slices import BuildSlices
    from nearsim_db.store.work.queue import WorkQueue

_ROWS_PER_DELETION = 20_000
_COUNTS = (
    *("indexed", "no_features", "twins", "pairs", "review_pairs", "stored_pairs", "clusters"),
    *("clustered_documents", "largest_cluster", "signature_bytes", "band_bytes", "pair_bytes"),
)


class GenerationTables(GenerationStatements):
    """The tables of a generation, bound to one transaction.

    An object is made once for each transaction, by `generation.tables(connection)` or `context.tables(connection)`. It
    is passed on instead of the connection and the names of the tables. Each subject of the store is an attribute, whose
    methods take only what they work on: `tables.signatures.read_heads(digests, family)`. Its class is a subclass of
    GenerationStatements in the module of the subject. That module is imported only when it is used for the first time,
    because many commands do not need NumPy. Like all functions of the store, these methods never commit.
    """

    def exist(self) -> bool:
        """Whether the tables of the generation exist, attached to their parents or not."""
        return bool(self.run("exists", leaf=self.leaves.qualified("signature")).value())

    def create(self) -> None:
        """Create the generation's own tables, not yet attached to their parents.

        If the generation is distributed, this also places its band table on the nodes. It does nothing if the
        generation shares all its tables, or if they exist: it does not even lock them then, because other processes
        may use them in a resumed build.
        """
        if self.leaves.are_shared or self.exist():
            return
        self.run("create_leaves")
        if self.leaves.distributed:
            placement.distribute_leaf(self.connection, self.leaves)

    def attach(self) -> None:
        """Attach the generation's own tables, which have been loaded, to their parents."""
        for name in self.leaves.own:
            parent = sql.Identifier(SCHEMA, name)
            self.run(statement("attach_leaf", self.leaves, parent=parent, leaf=self.leaves.table(name)))

    def detach(self) -> None:
        """Detach the generation's own tables without blocking users of other generations.

        Skips tables that are not attached. The connection must be in autocommit mode.
        """
        backend = autocommitting(self.connection)
        for name in self.leaves.own:
            # A parent can have only one unfinished detach. It may be an interrupted one of another generation.
            parent, leaf = sql.Identifier(SCHEMA, name), self.leaves.qualified(name)
            for pending in self.run("find_pending_detaches", parent=f"{SCHEMA}.{name}").values():
                unfinished = sql.Identifier(INDEX_SCHEMA, pending)
                backend.execute(statement("finish_detach", parent=parent, leaf=unfinished))

            if self.run("is_attached", leaf=leaf).value():
                # Only the band table of a distributed generation needs another statement.
                leaves = self.leaves if name == "band" else None
                if leaves and self.leaves.distributed:
                    placement.restore_shards(self.connection, self.leaves)
                backend.execute(statement("detach_leaf", leaves, parent=parent, leaf=self.leaves.table(name)))

    def empty(self) -> None:
        """Delete the generation's rows from tables that it shares, in slices.

        The connection must be in autocommit mode.
        """
        while retry_conflicts(self.connection, self._delete_slice):
            pass

    def _delete_slice(self) -> int:
        """Delete one slice of the generation's rows in shared tables; return the number of rows.

        Returns 0 if there are none left, or if the table is too damaged to be read.
        """
        try:
            with self.connection.backend.transaction():
                for deletion in _deletions(self.leaves):
                    if deleted := self.run(deletion, limit=_ROWS_PER_DELETION).count:
                        return deleted
            return 0
        except psycopg.Error as error:
            if corruption_message(error) is None:
                raise
            return 0

    def drop(self) -> None:
        """Drop those of the generation's own tables that exist, and delete its rows in tables that it shares."""
        while self._delete_slice():
            pass
        if not self.leaves.are_shared:
            self.run("drop_leaves")

    def count(self) -> dict[str, int]:
        """Return the numbers of rows of the generation, and the sizes of its tables with indexes in bytes.

        Raises UnreachableError if a node of the cluster does not answer.
        """
        measured = {"signature": "signature", "band": "band", "pair": "similar_pair"}
        parameters = {name: self.leaves.qualified(parent) for name, parent in measured.items()}
        try:
            *row, pair_bytes = self.run("count_generation", **parameters).row()
            band_bytes = self.run("measure_bands", **parameters).value()
        except psycopg.errors.InvalidTextRepresentation as error:
            # Citus reads the answer of a node as a size even if the answer is an error.
            raise UnreachableError(
                f"a node of the cluster does not answer: {error.diag.message_primary}"
            ) from error

        counts = dict(zip(_COUNTS, (*row, band_bytes, pair_bytes), strict=True))
        shares = {f"{name}_bytes": self._share(parent) for name, parent in measured.items()}
        return {name: int(counts[name] * shares.get(name, 1)) for name in _COUNTS}

    def _share(self, parent: str) -> float:
        """Return the fraction of the bytes of a table, from 0 to 1, that the generation uses.

        This is an estimate if the table is shared.
        """
        if not self.leaves.is_shared(parent):
            return 1.0
        # Assume that the generation uses the same fraction of the bands as of the signatures.
        counted = "signature" if parent == "band" else parent
        command = statement("read_share", rows=self.leaves.rows(counted))
        return float(self.run(command, leaf=self.leaves.qualified(counted)).value())

    def vacuum(self, parent: str) -> None:
        """Run VACUUM (ANALYZE) on one of the generation's tables. The connection must be in autocommit mode.

        A table that small generations share is vacuumed only if more rows have changed since the last VACUUM than the
        table has now, and if no other session is vacuuming it.
        """
        if self.leaves.are_shared:
            self.vacuum_grown([parent])
            return

        backend = autocommitting(self.connection)
        backend.execute(statement("vacuum_leaf", leaf=self.leaves.table(parent)))
        if parent == "signature":
            # If a generation is missing in the statistics of signed_document, the planner expects only one row of it.
            backend.execute(statement("analyze_table", table=sql.Identifier(INDEX_SCHEMA, "signed_document")))

    def reuse_space(self) -> None:
        """After a drop, vacuum those shared tables in which many rows have changed.

        The connection must be in autocommit mode.
        """
        # This session may not have reported the deletions of the last second to the server's statistics yet.
        self.run("report_changes")
        self.vacuum_grown(self.leaves.shared)

    def vacuum_grown(self, parents: Sequence[str]) -> None:
        """Run VACUUM (ANALYZE) on those shared tables of the given parents in which many rows have changed.

        The connection must be in autocommit mode.
        """
        tables = {self.leaves.qualified(parent): self.leaves.table(parent) for parent in parents}
        for name in self.run("list_grown_tables", leaves=list(tables)).values():
            autocommitting(self.connection).execute(statement("vacuum_shared", leaf=tables[name]))

    def read_bytes(self) -> int:
        """Return the size of the generation's tables with indexes.

        The generation's own tables, which are not locked for this, count with their size at the last VACUUM.
        """
        total = 0
        for parent in PARENTS:
            measure = "measure_leaf" if self.leaves.is_shared(parent) else "read_leaf_bytes"
            size = self.run(measure, leaf=self.leaves.qualified(parent)).value()
            total += int(float(size) * self._share(parent))
        return total

    def list_lock_holders(self) -> list[str]:
        """Return the sessions that use the generation's tables or their parents, for which a detach must wait."""
        tables = [
            name for parent in PARENTS for name in (f"{SCHEMA}.{parent}", self.leaves.qualified(parent))
        ]
        return self.run("list_lock_holders", tables=tables).values()

    @property
    def signatures(self) -> "SignatureTable":
        """Statements that write and read signatures, and assign heads."""
        from nearsim_db.store.signatures.signatures import SignatureTable

        return SignatureTable(self.connection, self.leaves)

    @property
    def bands(self) -> "BandTable":
        """Statements on band rows, and on the links that follow from them."""
        from nearsim_db.store.signatures.bands import BandTable

        return BandTable(self.connection, self.leaves)

    @property
    def buckets(self) -> "BucketQueries":
        """Lookups in buckets, which find linked anchors and further members."""
        from nearsim_db.store.signatures.neighbours import BucketQueries

        return BucketQueries(self.connection, self.leaves)

    @property
    def lookups(self) -> "LookupQueries":
        """The prepared queries of lookups and result sets."""
        from nearsim_db.store.signatures.lookups import LookupQueries

        return LookupQueries(self.connection, self.leaves)

    @property
    def pairs(self) -> "PairTable":
        """Statements on verified pairs."""
        from nearsim_db.store.pairs.pairs import PairTable

        return PairTable(self.connection, self.leaves)

    @property
    def clusters(self) -> "ClusterTable":
        """Statements on ties between documents, on members of clusters and on survivors."""
        from nearsim_db.store.clusters.clusters import ClusterTable

        return ClusterTable(self.connection, self.leaves)

    @property
    def work(self) -> "WorkQueue":
        """The work queue: statements that add, claim and finish work, and record failures."""
        from nearsim_db.store.work.queue import WorkQueue

        return WorkQueue(self.connection, self.leaves)

    @property
    def slices(self) -> "BuildSlices":
        """The slices of the generation's build: statements that plan, claim and finish them."""
        from nearsim_db.store.work.build_slices import BuildSlices

        return BuildSlices(self.connection, self.leaves)

    @property
    def checks(self) -> "IndexChecks":
        """What verify-index reads, and what its repair deletes."""
        from nearsim_db.store.generations.index_checks import IndexChecks

        return IndexChecks(self.connection, self.leaves)

    @property
    def diff(self) -> "DiffQueries":
        """Queries on documents for the comparison with another generation."""
        from nearsim_db.store.generations.diffs import DiffQueries

        return DiffQueries(self.connection, self.leaves)

    @property
    def report(self) -> "ReportQueries":
        """The queries of the report."""
        from nearsim_db.store.clusters.reports import ReportQueries

        return ReportQueries(self.connection, self.leaves)

    @property
    def shown(self) -> "ShownRows":
        """Queries for rows that are shown to users: documents, pairs and clusters."""
        from nearsim_db.store.query_rows import ShownRows

        return ShownRows(self.connection, self.leaves)

    @property
    def exports(self) -> "ExportQueries":
        """Queries for the export of the documents of the collection with their clusters."""
        from nearsim_db.store.documents.exports import ExportQueries

        return ExportQueries(self.connection, self.leaves)

    @property
    def removals(self) -> "PurgedRows":
        """Statements that remove documents, for purges and for retention."""
        from nearsim_db.store.documents.purges import PurgedRows

        return PurgedRows(self.connection, self.leaves)


def _deletions(leaves: Leaves) -> Iterator[sql.Composed]:
    """Yield the statements that each delete some rows of a generation from a table that it shares.

    Signatures come last, because list_remains finds an interrupted drop by its signatures.
    """
    for parent in reversed(leaves.shared):
        if parent == "band" and leaves.distributed:
            yield statement("delete_next_band", leaves)
        else:
            yield statement("delete_some_rows", leaf=leaves.table(parent), condition=leaves.condition(parent))
    yield statement("delete_some_copies", leaves)
