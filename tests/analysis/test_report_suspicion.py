"""The suspicion score of clusters written by hand."""

from dataclasses import replace

import pytest

from nearsim_db.analysis.report.comparisons import WEIGHTS, signs, suspicion
from nearsim_db.store.reports import ClusterFacts

COPIES = ClusterFacts(1, 1, 9, 0, 1.0, 1.0, 0, 1, 0.0)
DAY = 86_400.0


def test_suspicion_is_between_0_and_100_and_grows_with_each_sign() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1) and suspicion(COPIES, 0.7) == 0
    worst = ClusterFacts(1, 1, 2**40, 2**40 - 1, None, None, 2**40 - 1, 10**6, 10**6 * DAY)
    assert 95 < suspicion(worst, 0.7) < 100
    assert 0 <= suspicion(replace(COPIES, span_seconds=None, sources=0), 1.0) <= 100
    for changed in (
        replace(COPIES, chained=4, least=0.75, mean=0.8),
        replace(COPIES, mean=0.8, least=0.72),
        replace(COPIES, renumbered=3),
        replace(COPIES, sources=5),
        replace(COPIES, span_seconds=60 * DAY),
    ):
        assert suspicion(changed, 0.7) > 0


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
