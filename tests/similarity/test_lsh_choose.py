"""Choosing bands: the most rows per band that reach the recall, in the fewest bands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.lsh import choose_bands, match_probability, pick_bands
from tests.builders.selection import examples


def test_bands_of_the_default_recipe() -> None:
    choice = choose_bands(128, 0.7, 0.995)
    assert (choice.bands, choice.rows) == (20, 4)
    assert choice.probability(0.7) == pytest.approx(1 - (1 - 0.7**4) ** 20)
    assert choice.probability(0.7) == pytest.approx(0.9959, abs=5e-5)


def test_bands_of_other_thresholds() -> None:
    choice = choose_bands(128, 0.5, 0.99)
    assert (choice.bands, choice.rows) == (35, 3)
    assert choice.probability(0.5) == pytest.approx(1 - (1 - 0.5**3) ** 35)
    choice = choose_bands(128, 0.9, 0.99)
    assert (choice.bands, choice.rows) == (11, 10)
    assert choice.probability(0.9) == pytest.approx(1 - (1 - 0.9**10) ** 11)


def test_number_of_bands_fits_a_byte() -> None:
    choice = choose_bands(2048, 0.3, 0.98)
    assert (choice.bands, choice.rows) == (143, 3)
    assert match_probability(0.3, 2048 // 4, 4) > 0.98 > match_probability(0.3, 256, 4)


@examples(50)
@given(
    k=st.integers(16, 300),
    threshold=st.floats(0.4, 1.0),
    recall=st.floats(0.5, 0.99),
    minimum=st.integers(1, 3),
)
def test_number_of_rows_is_the_largest_possible(
    k: int, threshold: float, recall: float, minimum: int
) -> None:
    choice = choose_bands(k, threshold, recall, minimum)
    assert match_probability(threshold, choice.bands, choice.rows, minimum) >= recall
    assert choice.bands <= min(k // choice.rows, 256)
    if choice.bands > minimum:
        assert match_probability(threshold, choice.bands - 1, choice.rows, minimum) < recall
    for rows in range(choice.rows + 1, k + 1):
        assert match_probability(threshold, min(k // rows, 256), rows, minimum) < recall


def test_unreachable_recall_is_refused_with_the_remedy() -> None:
    with pytest.raises(RecipeError, match="one row per band gives 0\\.1855") as refused:
        choose_bands(4, 0.05, 0.99)
    assert "raise sketch.k" in str(refused.value)


@pytest.mark.parametrize(("threshold", "recall"), [(0.0, 0.9), (1.1, 0.9), (0.5, 0.0), (0.5, 1.0)])
def test_thresholds_and_recalls_out_of_range_are_refused(threshold: float, recall: float) -> None:
    with pytest.raises(RecipeError, match="out of range"):
        choose_bands(128, threshold, recall)


def test_riskiqs_rule_refuses_more_bands_than_positions() -> None:
    with pytest.raises(RecipeError, match="more than 10 bands"):
        pick_bands(0.001, 10)
    with pytest.raises(RecipeError, match="threshold of 0"):
        pick_bands(0, 10)
