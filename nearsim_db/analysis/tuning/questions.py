"""Questions about a corpus, compared by labels: which clusters does a recipe give, or which record is nearest.

The answer to a question is a set of pairs. In a corpus with D duplicate pairs, an answer of n pairs that contains a
fraction R of the labelled duplicates contains about D R duplicates, so its precision is D R / n. D is unknown, but by
the argument of `weighted_labels` it cannot exceed n / R of any answer. The precision of the labelled pairs within an
answer is another upper bound of its precision.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from nearsim_db.analysis.tuning.labels import PairLabels, f1_of
from nearsim_db.analysis.tuning.sampling import Sample
from nearsim_db.deduplication.rows import dedupe
from nearsim_db.records import Document
from nearsim_db.search.nearest import NearestQuery, NearestSearch, Record
from nearsim_db.similarity.field_rules import FieldRules
from nearsim_db.similarity.recipe import Recipe, override

# Comparing this number of characters by several recipes takes about a minute.
MAX_CHARACTERS = 10_000_000
# The values that docs/how-to/nearest.md recommends for two sources.
MIN_SIMILARITY, MARGIN = 0.1, 0.03
# The F1 on a hundred labels varies by more than this, so a smaller gain does not replace the first question.
MIN_BETTER_F1 = 0.02
_MIN_DUPLICATES, _MIN_PAIRS = 10, 30

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and how good its answer is according to the labels."""

    name: str  # proposal, preset record-linkage, starting recipe or nearest
    pairs: int  # pairs of different texts in the answer; for two sources, only pairs across the sources
    precision: float  # estimated
    recall: float  # of the labelled duplicates
    f1: float
    is_best: bool = False


class LabelledCorpus:
    """All texts of a corpus, with duplicate and distinct labelled pairs of their rows."""

    def __init__(self, sample: Sample, labelled: PairLabels, is_across: bool, threads: int) -> None:
        """`sample` must be the whole corpus. If `is_across`, only pairs of texts with different values count."""
        self._texts, self._threads = sample.texts_to_cluster, threads
        self._values = [str(value) for value in sample.values] if is_across else None
        self._labels: dict[Pair, bool] = {}
        for left, right, is_duplicate in labelled.pairs:
            pair = _pair(sample.rows[left], sample.rows[right])
            # Equal texts are left out unless sources are compared, as all recipes find them.
            if is_across or self._texts[pair[0]] != self._texts[pair[1]]:
                self._labels[pair] = is_duplicate
        self._duplicates = sum(self._labels.values())

    def ask(self, recipes: dict[str, Recipe]) -> list[Question]:
        """Return a question for each recipe and, for two sources, the question of the nearest record.

        The best question is marked. This is the first recipe, unless another question has an F1 that is higher by more
        than 0.02. The list is empty if no pair is labelled duplicate.
        """
        if not self._duplicates:
            return []
        answers = {name: self._cluster(recipe) for name, recipe in recipes.items()}
        if self._values is not None:
            answers["nearest"] = self._match_nearest()
        max_duplicates = min(map(self._max_duplicates, answers.values()), default=math.inf)
        questions = [self._question(name, answer, max_duplicates) for name, answer in answers.items()]

        best = best_of(questions)
        return [replace(question, is_best=question is best) for question in questions]

    def _cluster(self, recipe: Recipe) -> "_Answer":
        """Return the pairs within the clusters of a recipe."""
        documents = [
            Document(str(row), None, text, None if self._values is None else self._values[row])
            for row, text in enumerate(self._texts)
        ]
        # The sampled texts are made of the recipe's fields, so here they are bodies.
        deduped = dedupe(
            documents,
            recipe=override(recipe, ['fields=["body"]', "cluster.keep=earliest"]),
            across=None if self._values is None else "source",
            threads=self._threads,
        )

        survivor_of = {removed.row: removed.of for removed in deduped.removed if removed.of is not None}
        clusters = defaultdict(list)
        for row, survivor in survivor_of.items():
            while survivor in survivor_of:
                survivor = survivor_of[survivor]
            clusters[survivor].append(row)
        cluster_of = {row: first for first, rows in clusters.items() for row in (first, *rows)}
        joined = {pair for pair in self._labels if _are_joined(cluster_of, pair)}
        count = sum(self._count_pairs((first, *rows)) for first, rows in clusters.items())
        return _Answer(count, joined)

    def _count_pairs(self, rows: Sequence[int]) -> int:
        """Return the number of pairs of a cluster that count: pairs across two sources, or of different texts."""
        if self._values is not None:
            sizes = Counter(self._values[row] for row in rows)
            return sum(left * right for left, right in combinations(sizes.values(), 2))
        different = len({self._texts[row] for row in rows})
        return different * (different - 1) // 2

    def _match_nearest(self) -> "_Answer":
        """Return the pairs of records that are nearest to each other."""
        assert self._values is not None
        query = NearestQuery(1, MIN_SIMILARITY, mutual=True, across="source", margin=MARGIN)
        records = (
            Record(str(row), None, text, (value,))
            for row, (text, value) in enumerate(zip(self._texts, self._values, strict=True))
        )
        matches = NearestSearch(query).find(records, None)
        # A match is reported for each of its two records, so the set drops one of the two reports.
        pairs = {_pair(int(match.id), int(match.nearest)) for match in matches}
        return _Answer(len(pairs), self._labels.keys() & pairs)

    def _max_duplicates(self, answer: "_Answer") -> float:
        """Return the upper bound of the number of duplicates that follows from an answer, infinite for a small answer.

        The bound allows for one standard error of the answer's number of pairs and of its recall.
        """
        hits = self._hits(answer)
        if hits < _MIN_DUPLICATES or answer.pairs < _MIN_PAIRS:
            return math.inf
        recall = hits / self._duplicates
        error = math.sqrt(recall * (1 - recall) / self._duplicates)
        return answer.pairs * (1 + 1 / math.sqrt(answer.pairs)) / (recall - error)

    def _hits(self, answer: "_Answer") -> int:
        return sum(self._labels[pair] for pair in answer.labelled)

    def _question(self, name: str, answer: "_Answer", max_duplicates: float) -> Question:
        hits, recall = self._hits(answer), self._hits(answer) / self._duplicates
        precision = 0.0
        if answer.labelled and answer.pairs:
            expected = max_duplicates * (hits + 2) / (self._duplicates + 4)
            precision = min(hits / len(answer.labelled), expected / answer.pairs, 1.0)
        return Question(name, answer.pairs, precision, recall, f1_of(precision, recall))


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer to a question."""

    pairs: int  # number of pairs
    labelled: set[Pair]  # the labelled pairs among them


def _are_joined(cluster_of: dict[int, int], pair: Pair) -> bool:
    left, right = pair
    return left in cluster_of and cluster_of[left] == cluster_of.get(right)


def _pair(left: int, right: int) -> Pair:
    return (left, right) if left < right else (right, left)


def best_of(questions: Sequence[Question]) -> Question | None:
    """Return the question with the highest F1, None without questions.

    The first question is kept unless another has an F1 that is higher by more than 0.02.
    """
    best = questions[0] if questions else None
    for question in questions[1:]:
        if best is not None and question.f1 > max(best.f1, questions[0].f1 + MIN_BETTER_F1):
            best = question
    return best


def refusal(sample: Sample, recipe: Recipe) -> str | None:
    """Return why other questions are not compared, None if they are."""
    if not sample.is_whole:
        return "only a sample of the documents is read"
    characters = sum(map(len, sample.texts_to_cluster))
    if characters > MAX_CHARACTERS:
        return f"the texts have {characters:,} characters, more than {MAX_CHARACTERS:,}"
    if FieldRules.of(recipe) is not None:
        return "fields decide which documents may be a pair (match.within, match.within_days, match.across)"
    return None


def are_across(sample: Sample, labelled: PairLabels) -> bool:
    """Whether the corpus has two values, such as two sources, and each labelled pair has a document of either value."""
    values, rows = sample.values, sample.rows
    if None in values or len(set(map(str, values))) != 2:
        return False
    return all(values[rows[left]] != values[rows[right]] for left, right, _ in labelled.pairs)
