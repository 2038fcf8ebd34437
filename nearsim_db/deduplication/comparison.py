"""Which pairs of records count: with another corpus, of different values of a field; and which records they remove."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nearsim_db.readers.values import value_digest
from nearsim_db.similarity.arrays import Ints, Mask, are_fresh
from nearsim_db.similarity.field_rules import FieldRules
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.recipe.sections import NOWHERE

_MISSING = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared with what.

    Fields: the field whose values must differ in a pair, where None is a valid value; whether there is another corpus;
    whether records are compared with that one only; the other rules about fields, which hold in both corpora.
    """

    across: str | None = None
    against: bool = False
    only_against: bool = False
    field_rules: FieldRules | None = None

    @classmethod
    def of(cls, recipe: Recipe, across: str | None, *, against: bool, only_against: bool) -> Self:
        """Return what a recipe compares; `across` takes the place of its own."""
        field = across or (None if recipe.match.across == NOWHERE else recipe.match.across)
        return cls(field, against, only_against, FieldRules.of_records(recipe))


_ByValue = dict[int, dict[int, tuple[int, int]]]  # numbers of new and old records by node and value


class Labels:
    """Whether each record is of the other corpus, and its value of the field.

    Records are numbered as they are added, those of the other corpus first. After `finish` the arrays are complete.
    """

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self._values = array("q")
        self.count: int = 0
        self.against: int = 0

    @property
    def has_values(self) -> bool:
        """Whether any record has a value of the field."""
        return any(self._values)

    def add(self, count: int, values: Sequence[object], *, is_against: bool) -> None:
        """Add so many records of one corpus, with their values of the field if there is one."""
        self.count += count
        self.against += count if is_against else 0
        self._values.extend(_MISSING if value is None else _code(value) for value in values)

    def finish(self) -> None:
        """Complete the arrays."""
        self.is_against: Mask = np.arange(self.count) < self.against
        is_given = self.comparison.across is not None
        self.values: Ints | None = np.frombuffer(self._values, np.int64) if is_given else None

    def counts(self, left: int, right: int) -> bool:
        """Whether a pair of records counts."""
        against = (left < self.against) + (right < self.against)
        if against == 2 or (self.comparison.only_against and not against):
            return False
        return self.values is None or bool(self.values[left] != self.values[right])

    def firsts(self, records: Sequence[int]) -> list[int]:
        """Return the first records of either corpus, up to two of different values: a pair with any has one of them."""
        firsts: dict[bool, dict[int, int]] = {True: {}, False: {}}
        for record in records:
            same_corpus = firsts[record < self.against]
            if len(same_corpus) < 2:
                same_corpus.setdefault(0 if self.values is None else int(self.values[record]), record)
        return [*firsts[True].values(), *firsts[False].values()]


def _code(value: object) -> int:
    # Never 0, which means a missing value.
    return int.from_bytes(value_digest(value, 8), "little", signed=True) or 1


class Nodes:
    """Records by node: those of one node have the same pairs, and are pairs themselves.

    `node_of` is int64 of n, the number of one of the records, -1 for records without pairs; `records` are the others.
    """

    def __init__(self, labels: Labels, node_of: Ints, field_labels: NDArray[np.uint8]) -> None:
        """`field_labels` are those of all records under the comparison's rules; equal in one node."""
        self.labels: Labels = labels
        self.node_of: Ints = node_of
        self.field_labels: NDArray[np.uint8] = field_labels
        self.records: Ints = np.flatnonzero(node_of >= 0)
        nodes, count, is_old = node_of[self.records], len(node_of), labels.is_against[self.records]
        self._old = np.bincount(nodes[is_old], minlength=count)
        self._new = np.bincount(nodes[~is_old], minlength=count)

        # The smallest and the largest value of each node: pairs may count if these differ.
        self._values = None
        if labels.values is not None:
            values, limits = labels.values[self.records], np.iinfo(np.int64)
            self._values = np.full(count, limits.max), np.full(count, limits.min)
            np.minimum.at(self._values[0], nodes, values)
            np.maximum.at(self._values[1], nodes, values)

    @property
    def counts_all(self) -> bool:
        """Whether all pairs count."""
        comparison = self.labels.comparison
        return not comparison.against and self.labels.values is None and comparison.field_rules is None

    def may_count(self, left: Ints, right: Ints) -> Mask:
        """Return for which pairs of nodes some pairs of their records may count; do, if there is no other corpus."""
        old, new = self._old > 0, self._new > 0
        may: Mask = np.asarray((old[left] & new[right]) | (new[left] & old[right]))
        if not self.labels.comparison.only_against:
            may |= new[left] & new[right]
        if (rules := self.labels.comparison.field_rules) is not None:
            may &= rules.may_pair(self.field_labels[left], self.field_labels[right])
        if self._values is None:
            return may

        lowest, highest = (np.stack((limits[left], limits[right])) for limits in self._values)
        may &= lowest.min(axis=0) != highest.max(axis=0)
        return may

    def counted(self, edges: Ints) -> Mask:
        """Return which edges count; there is no other corpus."""
        return np.ones(len(edges), bool) if self.counts_all else self.may_count(*edges.T)

    def ties(self, is_used: Mask) -> Ints:
        """Return the ties of records with their nodes, if these have several values or an edge that counts."""
        nodes = self.node_of[self.records]
        tied = nodes != self.records
        if not self.counts_all:
            # Records that are no pair with each other are tied by what both are a pair with.
            tied &= is_used[nodes] | self.may_count(nodes, nodes)
        return np.stack((nodes[tied], self.records[tied]), axis=1)

    def count(self, edges: Iterable[Ints]) -> int:
        """Return the number of pairs of records of two nodes, tied by an edge, that count."""
        values = {} if self.labels.values is None else self._by_value()
        return sum(self._count(block, values) for block in edges)

    def _count(self, edges: Ints, values: _ByValue) -> int:
        left, right = edges.T
        new, old = self._new, self._old
        count = int(self._between(new[left], old[left], new[right], old[right]).sum())

        # Less those of equal values.
        for left_node, right_node in edges.tolist() if values else ():
            fewer, others = sorted((values[left_node], values[right_node]), key=len)
            count -= sum(
                int(self._between(*both, *others[value])) for value, both in fewer.items() if value in others
            )
        return count

    def count_within(self) -> int:
        """Return the number of pairs of records of one node that count."""
        count = int(self._within(self._new, self._old).sum())
        if self.labels.values is None:
            return count
        by_value = self._by_value()
        return count - sum(int(self._within(*both)) for node in by_value.values() for both in node.values())

    def _by_value(self) -> _ByValue:
        """Return the numbers of new and old records by node and value."""
        assert self.labels.values is not None
        by_value: _ByValue = defaultdict(dict)
        columns = (self.node_of, self.labels.values, self.labels.is_against)
        rows = zip(*(column[self.records].tolist() for column in columns), strict=True)
        for node, value, is_old in rows:
            new, old = by_value[node].get(value, (0, 0))
            by_value[node][value] = (new + (not is_old), old + is_old)
        return by_value

    def _between(self, new: Any, old: Any, other_new: Any, other_old: Any) -> Any:
        crossed = new * other_old + old * other_new
        return crossed if self.labels.comparison.only_against else crossed + new * other_new

    def _within(self, new: Any, old: Any) -> Any:
        return new * old + (0 if self.labels.comparison.only_against else new * (new - 1) // 2)


def matches(nodes: Nodes, edges: Iterable[Ints], rank: Ints, *, only_against: bool) -> Ints:
    """Return for each record the one of the smallest rank, smaller than its own, that it has a counted pair with.

    -1 for records without any, and for those of the other corpus; with `only_against` this is of the other corpus.

    `rank` is int64 of all records, smallest for those of the other corpus; `edges` are of nodes, many at once.
    """
    labels = nodes.labels
    # Without a field no two records have the same value.
    values = np.arange(labels.count) if labels.values is None else labels.values
    sources = nodes.records[nodes.records < labels.against] if only_against else nodes.records

    # The best record of each node, and the best one of another value, first among its own records, then of its edges.
    own = _two_best(labels.count, nodes.node_of[sources], sources, rank, values)
    best, other = (records.copy() for records in own)
    for block in edges:
        touched, ends = np.unique(block, return_inverse=True)
        ends = ends.reshape(block.shape)
        near = [(np.arange(len(touched)), records[touched]) for records in (best, other)]
        near += [(ends[:, side], records[block[:, 1 - side]]) for side in (0, 1) for records in own]
        places, candidates = (np.concatenate(columns) for columns in zip(*near, strict=True))
        is_any = candidates >= 0
        best[touched], other[touched] = _two_best(
            len(touched), places[is_any], candidates[is_any], rank, values
        )

    new = nodes.records[nodes.records >= labels.against]
    node = nodes.node_of[new]
    # Where there is no best record, -1 takes the last one, which is masked below.
    chosen = np.where(values[best[node]] != values[new], best[node], other[node])
    matched = np.full(labels.count, -1)
    matched[new] = np.where((best[node] >= 0) & (chosen >= 0) & (rank[chosen] < rank[new]), chosen, -1)
    return matched


def _two_best(count: int, places: Ints, records: Ints, rank: Ints, values: Ints) -> tuple[Ints, Ints]:
    """Return for each of `count` places the best of its records, and the best one of another value; -1 for none."""
    # By place, then by rank: lexsort begins with its last key.
    order = np.lexsort((rank[records], places))
    places, records = places[order], records[order]
    first, second = np.full(count, -1), np.full(count, -1)
    fresh = are_fresh(places)
    first[places[fresh]] = records[fresh]
    is_other = values[records] != values[first[places]]
    places, records = places[is_other], records[is_other]
    fresh = are_fresh(places)
    second[places[fresh]] = records[fresh]
    return first, second
