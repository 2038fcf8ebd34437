"""The algebra of amplification against simulation by hand and against the banding curve."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.errors import RecipeError
from nearsim_db.lsh import Sensitivity, and_, match_probability, or_


@given(base=st.floats(0, 1), bands=st.integers(1, 50), rows=st.integers(1, 10))
def test_any_of_all_is_banding(base: float, bands: int, rows: int) -> None:
    assert or_(bands, and_(rows)).probability(base) == pytest.approx(
        match_probability(base, bands, rows), abs=1e-9
    )


@given(base=st.floats(0, 1), count=st.integers(1, 20))
def test_all_and_any_are_each_others_mirror(base: float, count: int) -> None:
    assert and_(count).probability(base) == pytest.approx(1 - or_(count).probability(1 - base), abs=1e-9)


def test_functions_multiply() -> None:
    assert and_(3).functions == 3
    assert or_(40, and_(3)).functions == 120
    assert or_(4, and_(4, and_(4, or_(4)))).functions == 256


def test_one_copy_changes_nothing() -> None:
    assert or_(1, and_(1)).probability(0.3) == pytest.approx(0.3)


def test_a_construction_keeps_distances_and_moves_probabilities() -> None:
    amplified = or_(2, and_(2)).applied_to(Sensitivity(0.2, 0.6, 0.8, 0.4))
    assert (amplified.near_distance, amplified.far_distance) == (0.2, 0.6)
    assert amplified.near_probability == pytest.approx(1 - (1 - 0.64) ** 2)
    assert amplified.far_probability == pytest.approx(1 - (1 - 0.16) ** 2)


def test_combining_nothing_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"and\(0\)"):
        and_(0)
    with pytest.raises(RecipeError, match=r"or\(-1\)"):
        or_(-1)
