"""The tables of one generation as a value: created, attached, dropped, measured, and handed to every subject."""

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

    Made once a transaction, by `generation.tables(connection)` or `context.tables(connection)`, and passed on instead
    of the connection and the names of the tables. Each subject of the store is a part, whose methods take only what
    they work on: `tables.signatures.read_heads(digests, family)`. A part is a subclass of GenerationStatements in the
    module of its subject; it is imported here when it is first used, as many commands do without NumPy. Like all
    functions of the store, parts never commit.
    """

    def exist(self) -> bool:
        """Whether the tables exist, attached or not."""
        return bool(self.run("exists", leaf=self.leaves.qualified("signature")).value())

    def create(self) -> None:
        """Create a generation's own tables, standalone, and place the band table of a distributed one on the nodes.

        Does nothing if the generation shares all tables or its tables exist: these are not locked, as other processes
        of a resumed build use them.
        """
        if self.leaves.are_shared or self.exist():
            return
        self.run("create_leaves")
        if self.leaves.distributed:
            placement.distribute_leaf(self.connection, self.leaves)

    def attach(self) -> None:
        """Attach a generation's own tables, which are loaded, to their parents."""
        for name in self.leaves.own:
            parent = sql.Identifier(SCHEMA, name)
            self.run(statement("attach_leaf", self.leaves, parent=parent, leaf=self.leaves.table(name)))

    def detach(self) -> None:
        """Detach a generation's own tables without blocking users of other generations.

        The connection must be in autocommit. Skips tables that are not attached.
        """
        backend = autocommitting(self.connection)
        for name in self.leaves.own:
            # A parent can have only one unfinished detach, perhaps an interrupted one of another generation.
            parent, leaf = sql.Identifier(SCHEMA, name), self.leaves.qualified(name)
            for pending in self.run("find_pending_detaches", parent=f"{SCHEMA}.{name}").values():
                unfinished = sql.Identifier(INDEX_SCHEMA, pending)
                backend.execute(statement("finish_detach", parent=parent, leaf=unfinished))

            if self.run("is_attached", leaf=leaf).value():
                # Only the band table has a statement of its own on Citus.
                leaves = self.leaves if name == "band" else None
                if leaves and self.leaves.distributed:
                    placement.restore_shards(self.connection, self.leaves)
                backend.execute(statement("detach_leaf", leaves, parent=parent, leaf=self.leaves.table(name)))

    def empty(self) -> None:
        """Delete the generation's rows from tables that it shares, in slices; the connection must be in autocommit."""
        while retry_conflicts(self.connection, self._delete_slice):
            pass

    def _delete_slice(self) -> int:
        """Delete some rows of the generation; return their number, also 0 if the table is too damaged to be read."""
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
        """Drop the generation's own tables that exist, and delete its rows in tables that it shares."""
        while self._delete_slice():
            pass
        if not self.leaves.are_shared:
            self.run("drop_leaves")

    def count(self) -> dict[str, int]:
        """Return the row counts of a generation, and its sizes in bytes with indexes.

        Raises UnreachableError if a node does not answer.
        """
        measured = {"signature": "signature", "band": "band", "pair": "similar_pair"}
        parameters = {name: self.leaves.qualified(parent) for name, parent in measured.items()}
        try:
            *row, pair_bytes = self.run("count_generation", **parameters).row()
            band_bytes = self.run("measure_bands", **parameters).value()
        except psycopg.errors.InvalidTextRepresentation as error:
            # Citus reads the answer of a node as a size, also if it is a failure.
            raise UnreachableError(
                f"a node of the cluster does not answer: {error.diag.message_primary}"
            ) from error

        counts = dict(zip(_COUNTS, (*row, band_bytes, pair_bytes), strict=True))
        shares = {f"{name}_bytes": self._share(parent) for name, parent in measured.items()}
        return {name: int(counts[name] * shares.get(name, 1)) for name in _COUNTS}

    def _share(self, parent: str) -> float:
        """Return the generation's share in the bytes of a table, 0 to 1: an estimate if the table is shared."""
        if not self.leaves.is_shared(parent):
            return 1.0
        # Assume that a generation's shares in bands and in signatures are equal.
        counted = "signature" if parent == "band" else parent
        command = statement("read_share", rows=self.leaves.rows(counted))
        return float(self.run(command, leaf=self.leaves.qualified(counted)).value())

    def vacuum(self, parent: str) -> None:
        """VACUUM (ANALYZE) one of a generation's tables; the connection must be in autocommit.

        A table that small generations share is vacuumed only if as many rows have changed as it has, and no other
        session vacuums it.
        """
        if self.leaves.are_shared:
            self.vacuum_grown([parent])
            return

        backend = autocommitting(self.connection)
        backend.execute(statement("vacuum_leaf", leaf=self.leaves.table(parent)))
        if parent == "signature":
            # If statistics of signed_document do not have a generation, the planner expects one row of it.
            backend.execute(statement("analyze_table", table=sql.Identifier(INDEX_SCHEMA, "signed_document")))

    def reuse_space(self) -> None:
        """Vacuum shared tables that have grown, after a drop; the connection must be in autocommit."""
        # The deletions of the last second may not be reported yet.
        self.run("report_changes")
        self.vacuum_grown(self.leaves.shared)

    def vacuum_grown(self, parents: Sequence[str]) -> None:
        """VACUUM (ANALYZE) the shared tables of parents that have grown; the connection must be in autocommit."""
        tables = {self.leaves.qualified(parent): self.leaves.table(parent) for parent in parents}
        for name in self.run("list_grown_tables", leaves=list(tables)).values():
            autocommitting(self.connection).execute(statement("vacuum_shared", leaf=tables[name]))

    def read_bytes(self) -> int:
        """Return the size of the tables with indexes; its own ones, which are not locked, as of their last VACUUM."""
        total = 0
        for parent in PARENTS:
            measure = "measure_leaf" if self.leaves.is_shared(parent) else "read_leaf_bytes"
            size = self.run(measure, leaf=self.leaves.qualified(parent)).value()
            total += int(float(size) * self._share(parent))
        return total

    def list_lock_holders(self) -> list[str]:
        """Return the sessions that use a generation's tables or their parents, with which a detach conflicts."""
        tables = [
            name for parent in PARENTS for name in (f"{SCHEMA}.{parent}", self.leaves.qualified(parent))
        ]
        return self.run("list_lock_holders", tables=tables).values()

    @property
    def signatures(self) -> "SignatureTable":
        """Signatures: writing, reading, assigning heads."""
        from nearsim_db.store.signatures.signatures import SignatureTable

        return SignatureTable(self.connection, self.leaves)

    @property
    def bands(self) -> "BandTable":
        """Band rows, and the links they yield."""
        from nearsim_db.store.signatures.bands import BandTable

        return BandTable(self.connection, self.leaves)

    @property
    def buckets(self) -> "BucketQueries":
        """Look-ups in buckets: linked anchors and further members."""
        from nearsim_db.store.signatures.neighbours import BucketQueries

        return BucketQueries(self.connection, self.leaves)

    @property
    def lookups(self) -> "LookupQueries":
        """Prepared queries behind lookups and result sets."""
        from nearsim_db.store.signatures.lookups import LookupQueries

        return LookupQueries(self.connection, self.leaves)

    @property
    def pairs(self) -> "PairTable":
        """Verified pairs."""
        from nearsim_db.store.pairs.pairs import PairTable

        return PairTable(self.connection, self.leaves)

    @property
    def clusters(self) -> "ClusterTable":
        """Ties between documents, members of clusters and survivors."""
        from nearsim_db.store.clusters.clusters import ClusterTable

        return ClusterTable(self.connection, self.leaves)

    @property
    def work(self) -> "WorkQueue":
        """The work queue: adding, taking, finishing, failing."""
        from nearsim_db.store.work.queue import WorkQueue

        return WorkQueue(self.connection, self.leaves)

    @property
    def slices(self) -> "BuildSlices":
        """The slices of its build: planning, taking, finishing."""
        from nearsim_db.store.work.build_slices import BuildSlices

        return BuildSlices(self.connection, self.leaves)

    @property
    def checks(self) -> "IndexChecks":
        """Reads of verify-index, and deletions of its repair."""
        from nearsim_db.store.generations.index_checks import IndexChecks

        return IndexChecks(self.connection, self.leaves)

    @property
    def diff(self) -> "DiffQueries":
        """Documents to compare with another generation."""
        from nearsim_db.store.generations.diffs import DiffQueries

        return DiffQueries(self.connection, self.leaves)

    @property
    def report(self) -> "ReportQueries":
        """Queries behind the report."""
        from nearsim_db.store.clusters.reports import ReportQueries

        return ReportQueries(self.connection, self.leaves)

    @property
    def shown(self) -> "ShownRows":
        """Rows that queries show: documents, pairs and clusters."""
        from nearsim_db.store.query_rows import ShownRows

        return ShownRows(self.connection, self.leaves)

    @property
    def exports(self) -> "ExportQueries":
        """Documents of the collection with their clusters."""
        from nearsim_db.store.documents.exports import ExportQueries

        return ExportQueries(self.connection, self.leaves)

    @property
    def removals(self) -> "PurgedRows":
        """Removal of documents: purges and retention."""
        from nearsim_db.store.documents.purges import PurgedRows

        return PurgedRows(self.connection, self.leaves)


def _deletions(leaves: Leaves) -> Iterator[sql.Composed]:
    """Yield the statements that delete some rows of a generation from tables that it shares, signatures last.

    An interrupted drop is found by its signatures (list_remains).
    """
    for parent in reversed(leaves.shared):
        if parent == "band" and leaves.distributed:
            yield statement("delete_next_band", leaves)
        else:
            yield statement("delete_some_rows", leaf=leaves.table(parent), condition=leaves.condition(parent))
    yield statement("delete_some_copies", leaves)
