"""Faults of an index, counted by kind, with examples for people, and with the documents and pairs for a repair."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from nearsim_db.records import WorkStage
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations import index_checks
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.work.queue import STAGES

TableKind = Literal[
    "missing_table", "detached_table", "unlogged_table", "missing_index", "unusable_index", "missing_constraint",
    "wrong_index", "unreadable_table",
]  # fmt: skip
DocumentKind = Literal[
    "unsigned", "outdated", "stray_signature", "wrong_features", "wrong_sketch", "wrong_head", "missing_bands",
    "stray_bands",
]  # fmt: skip
PairKind = Literal["missing_pair", "untrue_pair", "rescored_pair"]
ClusterKind = Literal["wrong_cluster", "wrong_survivor"]
Kind = TableKind | DocumentKind | PairKind | ClusterKind | Literal["other_scheme", "lost_texts"]

_TABLES = {"signature": DocumentKind, "similar_pair": PairKind, "cluster_member": ClusterKind}
_TABLE_OF: dict[str, str] = {kind: table for table, kinds in _TABLES.items() for kind in get_args(kinds)}
_TABLE_OF |= {"missing_bands": "band", "stray_bands": "band"}

_MAX_EXAMPLES = 5
_MAX_MEMBERS_SHOWN = 5
# The number of documents and pairs that are recorded one by one; an index with more faults is rebuilt.
MAX_RECORDED = 100_000


@dataclass(frozen=True, slots=True)
class Fault:
    """The faults of one kind."""

    kind: Kind
    table: str | None
    count: int
    # Of each example, the external id of the document, two ids of a pair, or some ids of a cluster; #doc_id stands for
    # a deleted document. If a table is faulty, the example is a description.
    examples: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """The result of a check."""

    generation: int | None  # None if there is no index yet
    checked: dict[str, int]  # the number of checked rows, by kind
    changing: int  # differences that queued work will resolve
    faults: tuple[Fault, ...]


NOTHING_CHECKED = IndexCheck(None, {}, 0, ())


@dataclass(slots=True)
class FoundFaults:
    """The faults that a check has found so far."""

    generation: Generation
    checked: Counter[str] = field(default_factory=Counter)
    changing: int = 0  # differences that queued work will resolve
    documents: set[int] = field(default_factory=set)  # documents to sign again
    missing_pairs: list[tuple[int, int]] = field(default_factory=list)
    false_pairs: list[tuple[int, int]] = field(default_factory=list)  # untrue, or with a wrong similarity
    _counts: Counter[Kind] = field(default_factory=Counter)
    _examples: dict[Kind, list[tuple[int, ...]]] = field(default_factory=lambda: defaultdict(list))
    _tables: list[Fault] = field(default_factory=list)

    def add_table(self, kind: Kind, table: str | None, description: str) -> None:
        """Record a fault of a table, or of the whole index if `table` is None."""
        self._tables.append(Fault(kind, table, 1, ((description,),)))

    def add(self, kind: DocumentKind | PairKind | ClusterKind, doc_ids: Sequence[int]) -> None:
        """Record a fault of a document, of a pair, or of a cluster."""
        self._counts[kind] += 1
        if len(self._examples[kind]) < _MAX_EXAMPLES:
            self._examples[kind].append(tuple(doc_ids[:_MAX_MEMBERS_SHOWN]))

        if kind in get_args(DocumentKind) and len(self.documents) < MAX_RECORDED:
            self.documents.update(doc_ids)
        elif kind in get_args(PairKind):
            pairs = self.missing_pairs if kind == "missing_pair" else self.false_pairs
            if len(pairs) < MAX_RECORDED:
                pairs.append((doc_ids[0], doc_ids[1]))

    def add_unless_pending(
        self,
        connection: Connection,
        suspects: Iterable[tuple[DocumentKind | PairKind | ClusterKind, Sequence[int], Collection[int]]],
        stages: Sequence[WorkStage] = STAGES,
    ) -> None:
        """Record suspected faults, unless queued work of `stages` or an undispatched change will resolve them.

        A suspect consists of the kind of the fault, its doc_ids, and the documents whose work may resolve it.
        """
        suspects = list(suspects)
        involved = sorted({doc_id for _, _, doc_ids in suspects for doc_id in doc_ids})
        pending: Collection[int] = set()
        if involved:
            pending = self.generation.tables(connection).checks.find_pending_documents(
                self.generation.collection_id, involved, stages
            )

        # Work on document 0 concerns the whole index.
        for kind, doc_ids, resolving in suspects:
            if 0 in pending or any(doc_id in pending for doc_id in resolving):
                self.changing += 1
            else:
                self.add(kind, doc_ids)

    @property
    def is_damaged(self) -> bool:
        """Whether the tables themselves are faulty, or the whole index cannot be compared."""
        return bool(self._tables)

    @property
    def damaged_tables(self) -> list[str]:
        """The names of the tables that are faulty themselves."""
        return sorted({fault.table for fault in self._tables if fault.table is not None})

    @property
    def has_wrong_clusters(self) -> bool:
        """Whether any cluster has a fault."""
        return any(self._counts[kind] for kind in get_args(ClusterKind))

    @property
    def differing(self) -> dict[str, int]:
        """The numbers of faulty documents and pairs."""
        return {
            "documents": sum(self._counts[kind] for kind in get_args(DocumentKind)),
            "pairs": sum(self._counts[kind] for kind in get_args(PairKind)),
        }

    def summary(self, connection: Connection) -> IndexCheck:
        """Return the faults with external ids as examples."""
        shown = {doc_id for examples in self._examples.values() for ids in examples for doc_id in ids}
        names = index_checks.read_external_ids(connection, sorted(shown)) if shown else {}
        faults = [
            Fault(kind, self._table(kind), self._counts[kind], _named(self._examples[kind], names))
            for kind in _ORDER
            if self._counts[kind]
        ]
        return IndexCheck(
            self.generation.generation_id, dict(self.checked), self.changing, (*self._tables, *faults)
        )

    def _table(self, kind: Kind) -> str:
        return self.generation.leaves.name(_TABLE_OF[kind])


_ORDER: tuple[Kind, ...] = (*get_args(DocumentKind), *get_args(PairKind), *get_args(ClusterKind))


def _named(examples: Sequence[tuple[int, ...]], names: dict[int, str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(names.get(doc_id, f"#{doc_id}") for doc_id in ids) for ids in examples)
