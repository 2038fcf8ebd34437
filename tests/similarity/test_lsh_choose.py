"""Choosing bands: the most rows per band that reach the recall, in the fewest bands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.lsh import choose_bands, match_probability, pick_bands
from tests.builders.selection import examples


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


@pytest.mark.parametrize(
    ("k", "threshold", "recall"),
    [(4, 0.05, 0.99), (128, 0.0, 0.9), (128, 1.1, 0.9), (128, 0.5, 0.0), (128, 0.5, 1.0)],
)
def test_what_no_bands_reach_is_refused(k: int, threshold: float, recall: float) -> None:
    with pytest.raises(RecipeError):
        choose_bands(k, threshold, recall)


def test_riskiqs_rule_refuses_more_bands_than_positions() -> None:
    for threshold in (0.001, 0):
        with pytest.raises(RecipeError):
            pick_bands(threshold, 10)
