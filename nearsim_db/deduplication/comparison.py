"""Decide which pairs of records count, by corpus and by values of fields, and which records are removed for them.

There are two corpora if the input is compared with --against: old records are those of --against, and new records are
those of the input.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.readers.values import value_digest
from nearsim_db.similarity.arrays import Ints, Mask, are_fresh
from nearsim_db.similarity.field_rules import FieldRules
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.recipe.sections import NOWHERE

_MISSING = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Which records are compared with each other."""

    across: str | None = None  # a field whose values must differ in a pair; a missing value is a value too
    against: bool = False  # there are old records
    only_against: bool = False  # new records are compared with old records only
    field_rules: FieldRules | None = None  # further rules about fields, for pairs of all records
    only_from: str | None = None  # a file, input or source; only records from there are removed

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        across: str | None,
        *,
        against: bool,
        only_against: bool,
        only_from: str | None = None,
    ) -> Self:
        """Return what a recipe compares; `across` overrides the recipe's `match.across`.

        Raises RecipeError if the keep policy removes whole clusters and there are old records, because then there are
        no clusters.
        """
        if against and recipe.cluster.policy.keeps_none:
            raise RecipeError(
                "cluster.keep is 'none', which removes whole clusters, but there are none against another corpus; "
                "choose another rule, or leave the other corpus out"
            )
        field = across or (None if recipe.match.across == NOWHERE else recipe.match.across)
        return cls(field, against, only_against, FieldRules.of_records(recipe), only_from)


_ByValue = dict[int, dict[int, tuple[int, int]]]  # the numbers of new and of old records, by node and value


class Labels:
    """For each record, whether it is an old record, and its value of the field `across`.

    Records are numbered in the order in which they are added; old records are added first. The arrays exist after
    `finish`.
    """

    is_against: Mask
    values: Ints | None  # digests of the values of `across`; None without that field
    removable: Mask | None  # whether a record may be removed; None if all records may be

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self._values = array("q")
        self._removable = array("b")
        self.count: int = 0  # of all records
        self.against: int = 0  # number of old records

    @property
    def has_values(self) -> bool:
        """Whether any record has a value of the field `across`."""
        return any(self._values)

    @property
    def has_removable(self) -> bool:
        """Whether any record may be removed."""
        return any(self._removable)

    def add(
        self, count: int, values: Sequence[object], removable: Sequence[bool] = (), *, is_against: bool
    ) -> None:
        """Add `count` records of one corpus.

        values: the records' values of the field `across`, if there is one. removable: for each record whether it is
        from `only_from`, if that is given.
        """
        self.count += count
        self.against += count if is_against else 0
        self._values.extend(_MISSING if value is None else _code(value) for value in values)
        self._removable.extend(removable)

    def finish(self) -> None:
        """Complete the arrays."""
        self.is_against = np.arange(self.count) < self.against
        has_field = self.comparison.across is not None
        self.values = np.frombuffer(self._values, np.int64) if has_field else None
        is_limited = self.comparison.only_from is not None
        self.removable = np.frombuffer(self._removable, np.int8) > 0 if is_limited else None

    def counts(self, left: int, right: int) -> bool:
        """Whether a pair of records counts."""
        against = (left < self.against) + (right < self.against)
        if against == 2 or (self.comparison.only_against and not against):
            return False
        return self.values is None or bool(self.values[left] != self.values[right])

    def firsts(self, records: Sequence[int]) -> list[int]:
        """Return the first record of each corpus, and the first record there with another value of the field.

        If a further record has a counted pair with any of `records`, it also has one with a returned record.
        """
        firsts: dict[bool, dict[int, int]] = {True: {}, False: {}}
        for record in records:
            same_corpus = firsts[record < self.against]
            if len(same_corpus) < 2:
                same_corpus.setdefault(0 if self.values is None else int(self.values[record]), record)
        return [*firsts[True].values(), *firsts[False].values()]


def _code(value: object) -> int:
    # 0 is reserved for a missing value.
    return int.from_bytes(value_digest(value, 8), "little", signed=True) or 1


class Nodes:
    """Records grouped into nodes. The records of a node are similar to the same records, and to each other."""

    labels: Labels
    node_of: (
        Ints  # for each record the number of a record that stands for its node; -1 for records without pairs
    )
    field_labels: NDArray[np.uint8]  # of all records, under the comparison's rules; equal within a node
    records: Ints  # the records that are in a node

    def __init__(self, labels: Labels, node_of: Ints, field_labels: NDArray[np.uint8]) -> None:
        self.labels = labels
        self.node_of = node_of
        self.field_labels = field_labels
        self.records = np.flatnonzero(node_of >= 0)
        nodes, count, is_old = node_of[self.records], len(node_of), labels.is_against[self.records]
        self._old = np.bincount(nodes[is_old], minlength=count)
        self._new = np.bincount(nodes[~is_old], minlength=count)

        # The smallest and the largest value in each node. If these differ, pairs within the node may count.
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
        """Return for each pair of nodes whether a pair of their records may count. It does if all records are new."""
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
        """Return which edges count. Requires that all records are new."""
        return np.ones(len(edges), bool) if self.counts_all else self.may_count(*edges.T)

    def ties(self, is_used: Mask) -> Ints:
        """Return the ties between each record and the record that stands for its node, (m, 2).

        If some pairs do not count, these are the records of nodes that have a counted pair inside, or a counted edge
        according to `is_used`.
        """
        nodes = self.node_of[self.records]
        tied = nodes != self.records
        if not self.counts_all:
            # Two records whose own pair does not count are still connected by a record that both are paired with.
            tied &= is_used[nodes] | self.may_count(nodes, nodes)
        return np.stack((nodes[tied], self.records[tied]), axis=1)

    def count(self, edges: Iterable[Ints]) -> int:
        """Return the number of counted pairs of records from different nodes that an edge connects."""
        values = {} if self.labels.values is None else self._by_value()
        return sum(self._count(block, values) for block in edges)

    def _count(self, edges: Ints, values: _ByValue) -> int:
        left, right = edges.T
        new, old = self._new, self._old
        count = int(self._between(new[left], old[left], new[right], old[right]).sum())

        # Subtract the pairs with equal values.
        for left_node, right_node in edges.tolist() if values else ():
            smaller, larger = sorted((values[left_node], values[right_node]), key=len)
            count -= sum(
                int(self._between(*both, *larger[value]))
                for value, both in smaller.items()
                if value in larger
            )
        return count

    def count_within(self) -> int:
        """Return the number of counted pairs within nodes."""
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
    """Return for each new record the best record that it has a counted pair with, if that record is better than itself.

    The best record has the smallest rank; with `only_against` only old records are considered. The result is -1 for a
    record without such a pair, and for old records.

    rank: int64, for each record; old records have the smallest. edges: blocks of edges between nodes.
    """
    labels = nodes.labels
    # Without a field no two records have the same value.
    values = np.arange(labels.count) if labels.values is None else labels.values
    sources = nodes.records[nodes.records < labels.against] if only_against else nodes.records

    # For each node, find the best record, and the best record with another value: first among the records of the node,
    # then among those of the nodes that its edges lead to.
    of_nodes = _two_best(labels.count, nodes.node_of[sources], sources, rank, values)
    best, other = (records.copy() for records in of_nodes)
    for block in edges:
        touched, ends = np.unique(block, return_inverse=True)
        ends = ends.reshape(block.shape)
        near = [(np.arange(len(touched)), records[touched]) for records in (best, other)]
        near += [(ends[:, side], records[block[:, 1 - side]]) for side in (0, 1) for records in of_nodes]
        places, candidates = (np.concatenate(columns) for columns in zip(*near, strict=True))
        is_any = candidates >= 0
        best[touched], other[touched] = _two_best(
            len(touched), places[is_any], candidates[is_any], rank, values
        )

    new = nodes.records[nodes.records >= labels.against]
    node = nodes.node_of[new]
    # If there is no best record, the index -1 reads the last record; that is masked below.
    chosen = np.where(values[best[node]] != values[new], best[node], other[node])
    matched = np.full(labels.count, -1)
    matched[new] = np.where((best[node] >= 0) & (chosen >= 0) & (rank[chosen] < rank[new]), chosen, -1)
    return matched


def _two_best(count: int, places: Ints, records: Ints, rank: Ints, values: Ints) -> tuple[Ints, Ints]:
    """Return for each of `count` places its best record, and its best record with another value; -1 for no record."""
    # Sort by place, then by rank: lexsort sorts by its last key first.
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
