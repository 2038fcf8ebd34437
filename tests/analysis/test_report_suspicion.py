"""The suspicion score of clusters written by hand."""

from dataclasses import replace

import pytest

from nearsim_db.analysis.report.comparisons import WEIGHTS, signs, suspicion
from nearsim_db.store.reports import ClusterFacts

COPIES = ClusterFacts(1, 1, 9, 0, 1.0, 1.0, 0, 1, 0.0)
DAY = 86_400.0


def test_exact_copies_of_one_source_on_one_day_are_not_suspicious() -> None:
    assert suspicion(COPIES, 0.7) == 0


def test_worst_cluster_scores_nearly_100() -> None:
    worst = ClusterFacts(1, 1, 2**40, 2**40 - 1, None, None, 2**40 - 1, 10**6, 10**6 * DAY)
    assert 95 < suspicion(worst, 0.7) < 100


@pytest.mark.parametrize(
    "change",
    [
        {"chained": 4, "least": 0.75, "mean": 0.8},
        {"mean": 0.8, "least": 0.72},
        {"renumbered": 3},
        {"sources": 5},
        {"span_seconds": 60 * DAY},
    ],
)
def test_each_sign_raises_the_score(change: dict[str, float]) -> None:
    assert suspicion(replace(COPIES, **change), 0.7) > suspicion(COPIES, 0.7)  # type: ignore[arg-type]


def test_signs_of_a_cluster() -> None:
    facts = ClusterFacts(1, 1, 5, 2, 0.9, 0.85, 1, 4, 30 * DAY)
    found = signs(facts, 0.8)
    assert found == pytest.approx(
        {
            "chained": 2 / 4,
            # Two at 0.9 and two taken for 0.8 are 0.85 on average; the worst is at 0.8.
            "dissimilar": (1 - (0.85 + 0.8) / 2) / 0.2,
            "numbers_differ": 1 / 4,
            "sources": 3 / 4,
            "span": 1 / 2,
        }
    )


def test_a_larger_cluster_of_the_same_kind_is_more_suspicious() -> None:
    small = ClusterFacts(1, 1, 3, 1, 0.8, 0.8, 1, 2, DAY)
    large = ClusterFacts(1, 1, 33, 16, 0.8, 0.8, 16, 2, DAY)
    assert suspicion(large, 0.7) > suspicion(small, 0.7)


def test_missing_dates_and_a_threshold_of_one_are_accepted() -> None:
    assert 0 <= suspicion(replace(COPIES, span_seconds=None, sources=0), 1.0) <= 100


def test_weights_sum_to_one() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
