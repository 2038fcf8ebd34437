"""Thresholds and precision from decisions on a sample, against the whole population."""

import random

import pytest

from nearsim_db.analysis.reviewed_sample import FEWEST, estimate, wilson


def test_wilson_agrees_with_published_figures() -> None:
    # Newcombe (1998), table I: 81 of 263, and 0 of 20 without continuity correction.
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0.0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_weights_undo_unequal_probabilities() -> None:
    rng = random.Random(7)
    population = [
        (similarity, rng.random() < (similarity - 0.5) * 2)
        for similarity in (rng.uniform(0.5, 1) for _ in range(20_000))
    ]
    above = [same for similarity, same in population if similarity >= 0.7]
    precision = sum(above) / len(above)

    def drawn(rng: random.Random) -> list[tuple[float, bool, float]]:
        rows = []
        for similarity, same in population:
            probability = 0.03 if similarity < 0.9 else 0.006
            if rng.random() < probability:
                rows.append((similarity, same, probability))
        return rows

    found = [estimate(drawn(random.Random(seed)), 0.7) for seed in range(60)]
    assert sum(one.precision or 0 for one in found) / 60 == pytest.approx(precision, abs=0.01)
    covered = sum(one.low <= precision <= one.high for one in found)
    assert covered >= 53  # 95 % of 60 are 57; fewer than 53 have a probability of 1 %
    assert all(one.judged + one.below > FEWEST for one in found)


def test_the_threshold_that_separates_the_decisions_is_suggested() -> None:
    rows = [(0.5 + at / 100, at >= 25, 1.0) for at in range(50)]
    found = estimate(rows, 0.6)
    assert (found.suggested, found.suggested_f1) == (0.75, 1.0)
    assert found.f1 == pytest.approx(2 * 25 / (40 + 25))
    assert (found.judged, found.below) == (40, 10)
    higher = estimate([row for row in rows if row[0] >= 0.8], 0.8)
    assert (higher.suggested, higher.missing) == (None, FEWEST - 20)


def test_without_decisions_nothing_is_suggested() -> None:
    found = estimate([], 0.7)
    assert (found.precision, found.suggested, found.missing) == (None, None, FEWEST)
