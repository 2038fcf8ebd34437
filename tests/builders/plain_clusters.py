"""Clusters by definition, in plain Python: an oracle."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import combinations, product

import networkx as nx

from nearsim_db.similarity.recipe.sections import ClusterRules

Tie = tuple[int, int]
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)
# A document's score is chosen from these values by its length.
SCORES = (None, "9.5", 10, "none", -1)


@dataclass(frozen=True)
class Evidence:
    """What decides the clusters of a generation."""

    rules: ClusterRules
    heads: Mapping[int, int]  # of the documents with features
    numbers: Mapping[int, object]  # of all documents that are signed
    facts: Mapping[int, tuple[str | None, datetime, int]]  # source, date and length
    pairs: Mapping[Tie, float]  # similarities of pairs of heads
    verdicts: Mapping[Tie, str]
    threshold: float = 0.7

    def clusters(self) -> dict[int, tuple[int, bool]]:
        """The cluster of each member, and whether it survives. All ties are applied, the strongest first."""
        vetoes = [pair for pair, verdict in self.verdicts.items() if verdict == "vetoed"]
        pairs = sorted(self._pair_ties(), key=lambda tie: (-self.pairs[self._heads(tie)], tie))
        if self.rules.linkage == "connected":
            groups = united(self.numbers, [*self._bonds(), *pairs], vetoes)
            if not vetoes:
                graph = nx.Graph([*self._bonds(), *pairs])
                assert [set(group) for group in groups if len(group) > 1] == sorted(
                    (part for part in nx.connected_components(graph) if len(part) > 1), key=min
                )
        else:
            nodes = united(self.numbers, self._bonds(), vetoes)
            by_linkage = {"representative": self._stars, "average": self._averages}
            groups = by_linkage[self.rules.linkage](nodes, pairs, vetoes)

        of_documents: dict[int, tuple[int, bool]] = {}
        for members in groups:
            if len(members) > 1:
                survivor = min(members, key=lambda doc_id: self._rank(doc_id, members))
                survivor = 0 if self.rules.keep == "none" else survivor
                of_documents |= {doc_id: (min(members), doc_id == survivor) for doc_id in members}
        return of_documents

    def _family(self, head: int) -> list[int]:
        return sorted(doc_id for doc_id, its_head in self.heads.items() if its_head == head)

    def _bonds(self) -> list[Tie]:
        """Pins between signed documents, then ties between twins."""
        pins = [pair for pair, verdict in self.verdicts.items() if verdict == "pinned"]
        twins = [tie for tie in combinations(sorted(self.heads), 2) if len(set(self._heads(tie))) == 1]
        return sorted(tie for tie in pins if self.numbers.keys() >= {*tie}) + list(
            filter(self._may_tie, twins)
        )

    def _pair_ties(self) -> list[Tie]:
        families = [(self._family(left), self._family(right)) for left, right in self.pairs]
        ties = [tie for left_family, right_family in families for tie in product(left_family, right_family)]
        return [(min(tie), max(tie)) for tie in ties if self._may_tie(tie)]

    def _heads(self, tie: Tie) -> Tie:
        left, right = sorted(self.heads[doc_id] for doc_id in tie)
        return left, right

    def _may_tie(self, tie: Tie) -> bool:
        left, right = tie
        return self.rules.numbers_differ == "link" or self.numbers[left] == self.numbers[right]

    def _stars(self, nodes: list[set[int]], pairs: list[Tie], vetoes: list[Tie]) -> list[set[int]]:
        tied = {*pairs, *((right, left) for left, right in pairs)}
        # The representative, and all of its star.
        stars: list[tuple[set[int], set[int]]] = []
        for node in sorted(nodes, key=lambda members: min(map(self._rank, members))):
            possible = {
                place: max(self.pairs[self._heads(tie)] for tie in product(centre, node) if tie in tied)
                for place, (centre, star) in enumerate(stars)
                if not tied.isdisjoint(product(centre, node)) and not is_between(vetoes, star, node)
            }
            if possible:
                stars[max(possible, key=lambda place: (possible[place], -place))][1].update(node)
            else:
                stars.append((node, set(node)))
        return [star for _, star in stars]

    def _averages(self, nodes: list[set[int]], pairs: list[Tie], vetoes: list[Tie]) -> list[set[int]]:
        """Merge the two clusters with the highest average similarity, until no average reaches the threshold.

        The average is over texts: twins count as one text, and two texts that are not a pair count as 0.
        """
        texts = [{*map(self._text, node)} for node in nodes]
        place = {doc_id: at for at, node in enumerate(nodes) for doc_id in node}
        similar = {
            (place[a], self._text(a), place[b], self._text(b)): self.pairs[self._heads(tie)]
            for tie in pairs
            for a, b in (tie, tie[::-1])
        }
        totals: dict[Tie, float] = defaultdict(float)
        for (left_node, _, right_node, _), similarity in similar.items():
            totals[left_node, right_node] += similarity
        clusters = [[at] for at in range(len(nodes))]

        def members(cluster: list[int]) -> set[int]:
            return set().union(*(nodes[at] for at in cluster))

        def average(left: list[int], right: list[int]) -> float:
            size = sum(len(texts[a]) for a in left) * sum(len(texts[b]) for b in right)
            # Averages are rounded, because the last digits of a sum depend on the order of its terms.
            return round(sum(totals[tie] for tie in product(left, right)) / size, 9)

        while True:
            possible = {
                (-average(left, right), min(members(left)), min(members(right))): (left, right)
                for left, right in combinations(sorted(clusters, key=lambda nodes: min(members(nodes))), 2)
                if not is_between(vetoes, members(left), members(right))
            }
            best = min(possible, default=(0.0, 0, 0))
            if -best[0] < self.threshold - 1e-9:
                return [members(cluster) for cluster in clusters]
            both = possible[best]
            clusters = [cluster for cluster in clusters if cluster not in both] + [[*both[0], *both[1]]]

    def _text(self, doc_id: int) -> tuple[object, object]:
        numbers = self.numbers[doc_id] if self.rules.numbers_differ == "keep-apart" else None
        return self.heads.get(doc_id, doc_id), numbers

    @cached_property
    def _similarities(self) -> Mapping[Tie, float]:
        """The similarities of all documents that are pairs; 1 for twins."""
        twins = (tie for tie in combinations(sorted(self.heads), 2) if len(set(self._heads(tie))) == 1)
        ties = [*filter(self._may_tie, twins), *self._pair_ties()]
        return {tie: self.pairs.get(self._heads(tie), 1.0) for tie in ties}

    def _total(self, doc_id: int, members: Iterable[int]) -> float:
        ties = [(min(doc_id, other), max(doc_id, other)) for other in members]
        return round(sum(self._similarities.get(tie, 0.0) for tie in ties), 9)

    def _rank(self, doc_id: int, members: Iterable[int] = ()) -> tuple[object, ...]:
        source, date, length = self.facts[doc_id]
        score = SCORES[length % len(SCORES)]

        def key(rule: str) -> object:
            sources = rule.removeprefix("source:").split(",")
            return {
                "source": sources.index(source) if source in sources else len(sources),
                **{"longest": -length, "latest": _LATEST - date, "earliest": date},
                "highest": 1e9 if score in ("none", None) else -float(str(score)),
                **{"has": score is None, "none": 0},
                "central": -self._total(doc_id, members),
            }[rule.partition(":")[0]]

        rules = [self.rules.keep] if isinstance(self.rules.keep, str) else self.rules.keep
        by_date = [rule for rule in rules if rule in ("earliest", "latest")]
        return *map(key, rules), date, -doc_id if by_date[-1:] == ["latest"] else doc_id


def is_between(vetoes: Iterable[Tie], left: set[int], right: set[int]) -> bool:
    """Whether a veto connects two groups."""
    return any((a in left and b in right) or (a in right and b in left) for a, b in vetoes)


def united(documents: Iterable[int], ties: Iterable[Tie], vetoes: list[Tie]) -> list[set[int]]:
    """The groups that ties unite, in the order of their smallest documents.

    A tie unites two groups unless a veto connects them.
    """
    groups = {doc_id: {doc_id} for doc_id in sorted(documents)}
    for left, right in ties:
        if groups[left] is not groups[right] and not is_between(vetoes, groups[left], groups[right]):
            whole = groups[left] | groups[right]
            groups |= dict.fromkeys(whole, whole)
    distinct: list[set[int]] = []
    for group in groups.values():
        # United documents share one set object, so compare by identity.
        if not any(group is kept for kept in distinct):
            distinct.append(group)
    return distinct
