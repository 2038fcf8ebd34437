"""Limits on differences: how they are written, and exact decisions."""

import pytest

from nearsim_db.admin.reindex import Limit, Limits
from nearsim_db.admin.reindex.limits import CheckedLimit, check_limits, raise_if_exceeded
from nearsim_db.errors import LimitsExceededError, RecipeError


@pytest.mark.parametrize(
    ("told", "whole", "most"),
    [
        ("0.1%", 1_000, 1),
        ("0.1 %", 1_999, 1),
        ("0.001", 3_000, 3),
        ("1e-3", 3_000, 3),
        (0.001, 3_000, 3),
        ("33.3%", 1_000, 333),
        ("100%", 7, 7),
        ("1.0", 7, 7),
        ("0%", 7, 0),
        ("25", 7, 25),
        (25, 7, 25),
        ("1", 1_000, 1),
        ("0", 1_000, 0),
        ("5%", 0, 0),
    ],
)
def test_what_is_allowed(told: str | float, whole: int, most: int) -> None:
    limit = Limit.parse(told)
    assert not limit.is_exceeded(most, whole)
    assert limit.is_exceeded(most + 1, whole)
    assert Limit.parse(limit) is limit and limit.text == str(told)


@pytest.mark.parametrize("told", ["", "%", "some", "-1", "-0.1%", "1/3", "1_0", "nan", "inf", "٣"])
def test_what_is_no_limit(told: str) -> None:
    with pytest.raises(RecipeError, match=r"give a share as 0\.1%"):
        Limit.parse(told)


@pytest.mark.parametrize("told", ["101%", "1.5"])
def test_no_more_than_all_can_go_but_more_can_come(told: str) -> None:
    for name in ("lost", "rescored", "split"):
        with pytest.raises(RecipeError, match=f"a limit of {told} {name} is more than 100 %"):
            Limits.parse(**{name: told})
    assert list(Limits.parse(gained=told, merged=told).by_name) == ["gained", "merged"]
    assert not Limit.parse("300%").is_exceeded(30, 10) and Limit.parse("300%").is_exceeded(31, 10)


def test_what_exceeds_is_refused_by_name() -> None:
    limits = Limits.parse(lost="0.1%", split=2, gained=None)
    assert list(limits.by_name) == ["lost", "split"]
    checked = check_limits(limits, {"lost": 2, "split": 2}, {"lost": 1_000, "split": 0})
    assert checked == (
        CheckedLimit("lost", "0.1%", 2, 1_000, 0.002, exceeded=True),
        CheckedLimit("split", "2", 2, 0, None, exceeded=False),
    )
    said = r"generation 7 was not promoted: lost 2 of 1,000 \(0.2 %\) where 0.1% is allowed;"
    with pytest.raises(LimitsExceededError, match=said) as refused:
        raise_if_exceeded(7, "default", checked, "nearsim reindex diff")
    assert (refused.value.profile, refused.value.limits) == ("default", checked)
    raise_if_exceeded(7, "default", checked[1:], "nearsim reindex diff")
