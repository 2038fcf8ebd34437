"""The design of a family for a wanted sensitivity."""

import math

import pytest

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.amplification import Sensitivity
from nearsim_db.similarity.sensitivity_design import design


@pytest.mark.parametrize(
    "wanted", [(0.2, 0.8, 0.99, 0.01), (0.3, 0.5, 0.8, 0.3), (0.1, 0.4, 0.95, 0.1), (0.0, 0.5, 1.0, 0.1)]
)
def test_design_is_the_fewest_bands_by_brute_force(wanted: tuple[float, float, float, float]) -> None:
    near, far, near_probability, far_probability = wanted

    def suffices(bands: int, rows: int) -> bool:
        near_shared, far_shared = (1 - (1 - (1 - distance) ** rows) ** bands for distance in (near, far))
        return near_shared >= near_probability and far_shared <= far_probability

    expected = min((b, r) for b in range(1, 80) for r in range(1, 80) if suffices(b, r))
    banding = design(Sensitivity(*wanted))
    assert (banding.bands, banding.rows) == expected


@pytest.mark.parametrize(
    "wanted",
    [
        *((0.5, 0.5, 0.9, 0.1), (0.2, 0.8, 0.1, 0.9), (0.2, 0.8, 1.0, 0.1), (0.2, 0.8, 0.9, 0.0)),
        (0.5, 0.50001, 0.999, 0.001),
    ],
)
def test_impossible_designs_are_refused(wanted: tuple[float, float, float, float]) -> None:
    with pytest.raises(RecipeError):
        design(Sensitivity(*wanted))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        # One banding would need over a hundred million bands.
        ((0.4, 0.5, 0.99, 0.01), "or(9, and(33, or(26, and(4))))"),
        ((0.1, 0.15, 0.99, 0.01), "or(5, and(16, or(24, and(19))))"),
    ],
)
def test_close_distances_take_nested_bandings(wanted: tuple[float, ...], expected: str) -> None:
    construction = design(Sensitivity(*wanted))

    assert str(construction) == expected


@pytest.mark.parametrize("wanted", [(0.4, 0.5, 0.99, 0.01), (0.49, 0.5, 0.9, 0.1), (0.3, 0.35, 0.999, 0.001)])
def test_nested_bandings_have_the_wanted_sensitivity(wanted: tuple[float, ...]) -> None:
    near, far, near_probability, far_probability = wanted

    construction = design(Sensitivity(*wanted))

    # The formula of each banding, from the inside out.
    levels = construction.levels[::-1]
    shared = [1 - near, 1 - far]
    for all_agree, any_agrees in zip(levels[::2], levels[1::2], strict=True):
        shared = [1 - (1 - agreement**all_agree.count) ** any_agrees.count for agreement in shared]
    assert shared[0] >= near_probability and shared[1] <= far_probability


def test_distances_of_angles_are_designed_by_their_agreement() -> None:
    construction = design(Sensitivity(60, 75, 0.95, 0.05), lambda degrees: 1 - degrees / 180)

    assert construction.probability(1 - 60 / 180) >= 0.95
    assert construction.probability(1 - 75 / 180) <= 0.05
    assert math.prod(level.count for level in construction.levels) == construction.functions
