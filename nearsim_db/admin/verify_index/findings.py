"""What an audit finds: faults by kind, counted, with the first few of each, and what a repair has to know of them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from nearsim_db.store import verify_index as store
from nearsim_db.store.catalog import Generation
from nearsim_db.store.driver import Connection

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
Kind = TableKind | DocumentKind | PairKind | ClusterKind | Literal["other_scheme"]

_TABLES = {"signature": DocumentKind, "similar_pair": PairKind, "cluster_member": ClusterKind}
_TABLE_OF: dict[str, str] = {kind: table for table, kinds in _TABLES.items() for kind in get_args(kinds)}
_TABLE_OF |= {"missing_bands": "band", "stray_bands": "band"}

_EXAMPLES = 5
_MEMBERS_SHOWN = 5
KEPT = (
    100_000  # documents and pairs of which is known which they are; with more of them an index is built anew
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of difference. `examples` are external ids, or #numbers of documents that are gone: one of a document,
    two of a pair, a few of a cluster; or what is wrong with a table, in words."""

    kind: Kind
    table: str | None
    count: int
    examples: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """What was looked at and what differs. `changing` counts differences that the index has still to follow."""

    generation: int
    checked: dict[str, int]
    changing: int
    faults: tuple[Fault, ...]


@dataclass(slots=True)
class Findings:
    """The differences so far. `documents` are those to be signed again, `pairs` those to be searched again."""

    generation: Generation
    checked: Counter[str] = field(default_factory=Counter)
    changing: int = 0
    documents: set[int] = field(default_factory=set)
    lost_pairs: list[tuple[int, int]] = field(default_factory=list)
    wrong_pairs: list[tuple[int, int]] = field(default_factory=list)
    _counts: Counter[Kind] = field(default_factory=Counter)
    _examples: dict[Kind, list[tuple[int, ...]]] = field(default_factory=lambda: defaultdict(list))
    _tables: list[Fault] = field(default_factory=list)

    def add_table(self, kind: Kind, table: str | None, what: str) -> None:
        """A table is not as it should be, or a whole index."""
        self._tables.append(Fault(kind, table, 1, ((what,),)))

    def add_document(self, kind: DocumentKind, doc_id: int) -> None:
        """A document is not in the index as it should be."""
        self._add(kind, (doc_id,))
        if len(self.documents) < KEPT:
            self.documents.add(doc_id)

    def add_pair(self, kind: PairKind, ends: tuple[int, int]) -> None:
        """A pair is not stored as it should be."""
        self._add(kind, ends)
        kept = self.lost_pairs if kind == "missing_pair" else self.wrong_pairs
        if len(kept) < KEPT:
            kept.append(ends)

    def add_cluster(self, kind: ClusterKind, doc_ids: Iterable[int]) -> None:
        """A cluster is not as its ties make it."""
        self._add(kind, tuple(doc_ids)[:_MEMBERS_SHOWN])

    def _add(self, kind: Kind, doc_ids: tuple[int, ...]) -> None:
        self._counts[kind] += 1
        if len(self._examples[kind]) < _EXAMPLES:
            self._examples[kind].append(doc_ids)

    @property
    def is_damaged(self) -> bool:
        """Whether the tables themselves are at fault, or made by another scheme."""
        return bool(self._tables)

    @property
    def has_wrong_clusters(self) -> bool:
        """Whether any cluster is not as its ties make it."""
        return any(self._counts[kind] for kind in get_args(ClusterKind))

    @property
    def differing(self) -> dict[str, int]:
        """How many documents and pairs differ."""
        return {
            "documents": sum(self._counts[kind] for kind in get_args(DocumentKind)),
            "pairs": sum(self._counts[kind] for kind in get_args(PairKind)),
        }

    def audit(self, connection: Connection) -> Audit:
        """What was found, in the owner's words."""
        shown = {one for examples in self._examples.values() for ids in examples for one in ids}
        names = store.read_external_ids(connection, sorted(shown)) if shown else {}
        found = [
            Fault(kind, self._table(kind), self._counts[kind], _named(self._examples[kind], names))
            for kind in _ORDER
            if self._counts[kind]
        ]
        return Audit(
            self.generation.generation_id, dict(self.checked), self.changing, (*self._tables, *found)
        )

    def _table(self, kind: Kind) -> str:
        return self.generation.leaves.name(_TABLE_OF[kind])


_ORDER: tuple[Kind, ...] = (*get_args(DocumentKind), *get_args(PairKind), *get_args(ClusterKind))


def _named(examples: Sequence[tuple[int, ...]], names: dict[int, str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(names.get(one, f"#{one}") for one in ids) for ids in examples)
