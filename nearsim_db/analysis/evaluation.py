"""How an index classifies pairs that people labelled: by its pairs, and by its clusters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearsim_db.analysis.tuning.labels import Band, Labels, Point, by_band, scored
from nearsim_db.errors import InputError
from nearsim_db.search.answers import Answers
from nearsim_db.store.query_rows import StoredPair


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A labelled pair that an index takes for something else, by its pairs or by its clusters."""

    cluster: int | None
    left: str
    right: str
    duplicate: bool
    is_pair: bool
    same_cluster: bool
    similarity: float | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Precision, recall and F1 of the pairs and of the clusters of a profile, with its threshold.

    `accept_all` is what calling every labelled pair a duplicate would give. `bands` are the labelled pairs whose
    similarity is stored, from the threshold or `match.review` on; `unknown` counts pairs of documents that the index
    lacks, `bad_lines` unusable lines, and `first_reasons` has the first of both. `disagreements` are by cluster.
    """

    profile: str
    threshold: float
    duplicates: int
    distinct: int
    pairs: Point
    clusters: Point
    accept_all: Point
    bands: list[Band]
    unknown: int
    bad_lines: int
    first_reasons: list[str]
    disagreements: list[Disagreement]


def find_disagreements(
    found: Sequence[StoredPair], labelled: Labels
) -> list[tuple[Disagreement, StoredPair]]:
    """Return the labelled pairs of indexed documents that an index takes for something else, by cluster."""
    differing = [
        (Disagreement(one.cluster, left, right, label, one.is_pair, one.same_cluster, one.similarity), one)
        for one, (left, right, label) in zip(found, labelled.pairs, strict=True)
        if one.is_indexed and not (label == one.is_pair == one.same_cluster)
    ]
    return sorted(
        differing, key=lambda two: (two[0].cluster is None, two[0].cluster, two[0].left, two[0].right)
    )


def evaluate(answers: Answers, labelled: Labels) -> Evaluation:
    """Score the live index of a profile. Raises InputError if no labelled pair is in it."""
    found = answers.look_up_pairs([(left, right) for left, right, _ in labelled.pairs])
    known = [(one, label) for one, (_, _, label) in zip(found, labelled.pairs, strict=True) if one.is_indexed]
    reasons = [
        f"{left} and {right} are not both in the index"
        for one, (left, right, _) in zip(found, labelled.pairs, strict=True)
        if not one.is_indexed
    ]
    if not known:
        raise InputError(
            f"none of {len(labelled.pairs):,} labelled pairs is in the index (unusable lines: {labelled.bad:,}); "
            "check the ids of the labels"
        )
    duplicate = np.array([label for _, label in known], bool)
    similarity = np.array([np.nan if one.similarity is None else one.similarity for one, _ in known])
    stored = ~np.isnan(similarity)
    positive = int(duplicate.sum())
    profile, threshold, _ = answers.least_similarity()

    def point(called: list[bool]) -> Point:
        chosen = np.array(called, bool)
        return scored(int((chosen & duplicate).sum()), int(chosen.sum()), positive, threshold)

    return Evaluation(
        profile,
        threshold,
        positive,
        len(known) - positive,
        point([one.is_pair for one, _ in known]),
        point([one.same_cluster for one, _ in known]),
        point([True] * len(known)),
        by_band(similarity[stored], duplicate[stored]),
        len(reasons),
        labelled.bad,
        [*labelled.reasons, *reasons][:5],
        [one for one, _ in find_disagreements(found, labelled)],
    )
