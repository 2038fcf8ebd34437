"""Choice of the pairs that a report shows side by side, and of the large and suspicious clusters that it lists."""

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from nearsim_db.analysis.report.contents import (
    ClusterOverview,
    ListedCluster,
    ShownPair,
    ShownPassage,
    Side,
    Why,
)
from nearsim_db.analysis.text_diff import compare
from nearsim_db.similarity.arrays import Ints
from nearsim_db.similarity.passages import Passage
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.text.pages import shown_text
from nearsim_db.store.clusters.reports import ClusterFacts, Member, ReadText, ReportPair, Timeline

MAX_READ_CHARACTERS = 100_000
_CANDIDATES_PER_PAIR = 8
_MAX_PASSAGES = 5

Choice = tuple[Why, ReportPair]


class ReportFigures(Protocol):
    """The pairs and clusters of a report, from an index (`ReportQueries`) or from files (`FileFigures`)."""

    def read_lowest_pairs(self, amount: int, /) -> list[ReportPair]:
        """Return the least similar pairs."""

    def read_renumbered_pairs(self, amount: int, /) -> list[ReportPair]:
        """Return the most similar pairs whose numbers differ."""

    def read_spread_pairs(self, min_similarity: float, steps: int, /) -> list[ReportPair]:
        """Divide the similarities from `min_similarity` to 1 into equal steps, and return a pair of each step."""

    def count_similarities(self, min_similarity: float, steps: int, /) -> Ints:
        """Count the pairs in equal steps of similarity from `min_similarity` to 1.

        Returns int64 of (steps, 2): pairs whose texts have equal numbers, and pairs whose texts have different numbers.
        """

    def stream_cluster_facts(self) -> Iterator[ClusterFacts]:
        """Yield the facts of all clusters."""

    def read_cluster_details(self, cluster_ids: Sequence[int], members: int, /) -> dict[int, list[Member]]:
        """Return the first members of some clusters: the survivor, then the members least similar to it."""

    def read_timelines(self, cluster_ids: Sequence[int], steps: int, /) -> dict[int, Timeline]:
        """Return the timelines of some clusters, without clusters that have no dates."""


def choose(report: ReportFigures, least: float, count: int) -> list[Choice]:
    """Choose up to `count` pairs to show, about a third of each kind, preferably from different clusters.

    The kinds are the most similar pairs whose numbers differ, the least similar pairs, and a sample spread over the
    similarities from `least` to 1.
    """
    chosen: list[Choice] = []
    if not count:
        return chosen
    third, max_candidates = -(-count // 3), count * _CANDIDATES_PER_PAIR

    _choose(chosen, "numbers differ", report.read_renumbered_pairs(max_candidates), third)
    _choose(chosen, "least similar", report.read_lowest_pairs(max_candidates), third)
    remaining = count - len(chosen)
    spread = report.read_spread_pairs(min(least, 0.99), max(remaining, 1))
    _choose(chosen, "sample", spread, remaining)
    return chosen


def _choose(chosen: list[Choice], why: Why, candidates: Sequence[ReportPair], count: int) -> None:
    """Append up to `count` candidates in their order. Pairs without a verdict and of further clusters are preferred."""
    taken = {(pair.left_id, pair.right_id) for _, pair in chosen}
    clusters = {pair.cluster_id for kind, pair in chosen if kind == why}
    fresh = [pair for pair in candidates if (pair.left_id, pair.right_id) not in taken]

    preferred: list[ReportPair] = []
    of_chosen_clusters: list[ReportPair] = []
    for pair in sorted(fresh, key=lambda pair: pair.verdict is not None):
        (of_chosen_clusters if pair.cluster_id in clusters else preferred).append(pair)
        clusters.add(pair.cluster_id)
    kept = {id(pair) for pair in (preferred + of_chosen_clusters)[: max(count, 0)]}
    chosen.extend((why, pair) for pair in fresh if id(pair) in kept)


def compare_all(
    chosen: Sequence[Choice],
    texts: Mapping[int, ReadText],
    recipe: Recipe,
    passages_of: Callable[[str, str], Sequence[Passage]],
) -> tuple[ShownPair, ...]:
    """Return the chosen pairs with the differences of their texts. Pairs that have a verdict come last.

    A pair is omitted if a text is missing, because its document was deleted in between. `passages_of` returns the
    passages that two texts share. It returns none if the metric is not containment.
    """
    shown = []
    for why, pair in chosen:
        left, right = texts.get(pair.left_id), texts.get(pair.right_id)
        if left is None or right is None:
            continue

        contents = _content(left, recipe), _content(right, recipe)
        shown.append(
            ShownPair(
                **pair.figures(),
                why=why,
                left=_side(left),
                right=_side(right),
                numbers_differ=pair.numbers_differ,
                verdict=pair.verdict,
                diff=compare(*contents),
                passages=tuple(map(_shown_passage, passages_of(*contents)[:_MAX_PASSAGES])),
            )
        )
    return tuple(sorted(shown, key=lambda pair: pair.verdict is not None))


def _shown_passage(passage: Passage) -> ShownPassage:
    diff = compare(passage.left.text, passage.right.text)
    return ShownPassage(passage.equal, passage.share, passage.documents, diff)


def _content(text: ReadText, recipe: Recipe) -> str:
    values = {"title": text.title, "body": text.body}
    return shown_text(values, recipe.fields, html=recipe.normalise.html)


def _side(text: ReadText) -> Side:
    return Side(
        text.external_id,
        text.title,
        text.source,
        text.date,
        text.url,
        text.body is not None,
        (text.characters or 0) > MAX_READ_CHARACTERS,
        text.stale,
    )


MAX_LISTED_MEMBERS = 12
TIMELINE_STEPS = 40
MIN_SUSPICION = 10

_Scored = tuple[float, ClusterFacts]


def read_clusters(report: ReportFigures, threshold: float, top: int) -> ClusterOverview:
    """Count clusters by size, and list the `top` largest and the `top` most suspicious ones with their first members.

    A cluster with a score of 10 or more (of 100) counts as suspicious. Clusters are streamed: only the clusters to list
    are kept in memory.
    """
    sizes: Counter[int] = Counter()
    largest = _TopClusters(top)
    suspicious = _TopClusters(top)
    all_suspicious = 0
    for facts in report.stream_cluster_facts():
        sizes[facts.members] += 1
        score = suspicion(facts, threshold)
        largest.offer(facts.members, score, facts)
        if score >= MIN_SUSPICION:
            all_suspicious += 1
            suspicious.offer(score, score, facts)

    chosen = [*largest.sorted(), *suspicious.sorted()]
    ids = sorted({facts.cluster_id for _, facts in chosen})
    members = report.read_cluster_details(ids, MAX_LISTED_MEMBERS) if ids else {}
    timelines = report.read_timelines(ids, TIMELINE_STEPS) if ids else {}
    return ClusterOverview(
        sizes.total(),
        sum(size * clusters for size, clusters in sizes.items()),
        tuple(sorted(sizes.items())),
        _listed(largest.sorted(), members, timelines),
        _listed(suspicious.sorted(), members, timelines),
        all_suspicious,
    )


class _TopClusters:
    """The `size` clusters with the highest measure. If measures are equal, the lower cluster id ranks first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._heap: list[tuple[float, int, _Scored]] = []

    def offer(self, measure: float, score: float, facts: ClusterFacts) -> None:
        """Keep a cluster if its measure is among the highest so far."""
        entry = (measure, -facts.cluster_id, (score, facts))
        if len(self._heap) < self._size:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    def sorted(self) -> list[_Scored]:
        """Return the kept clusters with their suspicion scores, highest measure first."""
        return [scored for _, _, scored in sorted(self._heap, reverse=True)]


def _listed(
    chosen: Sequence[_Scored],
    members: dict[int, list[Member]],
    timelines: dict[int, Timeline],
) -> tuple[ListedCluster, ...]:
    return tuple(
        ListedCluster(
            facts, round(score, 1), tuple(members.get(facts.cluster_id, ())), timelines.get(facts.cluster_id)
        )
        for score, facts in chosen
    )


# Weights of the signs that the members of a cluster are not near-duplicates. The weights add up to 1.
WEIGHTS = {"chained": 0.35, "dissimilar": 0.20, "numbers_differ": 0.20, "sources": 0.10, "span": 0.15}
_SPAN_HALF_SECONDS = 30 * 86_400.0


def signs(facts: ClusterFacts, threshold: float) -> dict[str, float]:
    """Return the signs that a cluster is suspicious, each in 0..1, under the names of `WEIGHTS`.

    chained: the fraction of the members, without the survivor, that have no pair with the survivor.
    dissimilar: how dissimilar members are from the survivor, from 0 at similarity 1 to 1 at the threshold. This is the
    mean of the average and the worst member; chained members count as if their similarity were the threshold.
    numbers_differ: the fraction of the members whose numbers differ from the survivor's numbers.
    sources: 1 - 1 / number of sources.
    span: the time t between the first and the last date, as t / (t + 30 days).
    """
    duplicates = facts.members - 1
    similarity_range = max(1.0 - threshold, 1e-9)
    paired = duplicates - facts.chained
    total = (facts.mean if facts.mean is not None else threshold) * paired + threshold * facts.chained
    worst = threshold if facts.chained or facts.least is None else facts.least
    span = facts.span_seconds or 0.0

    values = {
        "chained": facts.chained / duplicates,
        "dissimilar": (1.0 - (total / duplicates + worst) / 2) / similarity_range,
        "numbers_differ": facts.renumbered / duplicates,
        "sources": 1 - 1 / max(facts.sources, 1),
        "span": span / (span + _SPAN_HALF_SECONDS),
    }
    return {name: min(max(value, 0.0), 1.0) for name, value in values.items()}


def suspicion(facts: ClusterFacts, threshold: float) -> float:
    """Return the suspicion score of a cluster, from 0 to 100.

    It is 100 times the weighted sum of the signs, times log2(members) / (log2(members) + 2). `threshold` is the lowest
    similarity that a pair of the profile can have.
    """
    size = math.log2(facts.members) / (math.log2(facts.members) + 2)
    values = signs(facts, threshold)
    return 100 * size * sum(weight * values[name] for name, weight in WEIGHTS.items())
