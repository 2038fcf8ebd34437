"""The tables of one generation as a value: statements of all subjects of the store that work on them."""

from typing import TYPE_CHECKING

from nearsim_db.store.driver.statements import GenerationStatements

if TYPE_CHECKING:
    from nearsim_db.store.clusters.clusters import ClusterTable
    from nearsim_db.store.pairs.pairs import PairTable
    from nearsim_db.store.signatures.bands import BandTable
    from nearsim_db.store.signatures.lookups import LookupQueries
    from nearsim_db.store.signatures.neighbours import BucketQueries
    from nearsim_db.store.signatures.signatures import SignatureTable
    from nearsim_db.store.work.build_slices import BuildSlices
    from nearsim_db.store.work.queue import WorkQueue


class GenerationTables(GenerationStatements):
    """The tables of a generation, as one transaction reads and writes them.

    Made once a transaction, by `generation.tables(connection)` or `context.tables(connection)`, and passed on instead
    of the connection and the names of the tables. Each subject of the store is a part, whose methods take only what
    they work on: `tables.signatures.read_heads(digests, family)`. A part is a subclass of GenerationStatements in the
    module of its subject, whose functions on a generation are its methods; it is imported here when it is first used,
    as many commands do without NumPy. Like all functions of the store, parts never commit.
    """

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
        """Heads in their buckets: neighbours, anchors and further members."""
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
