"""Limits on differences: how they are written, and exact decisions."""

import pytest

from nearsim_db.admin.reindex import Limit, Limits
from nearsim_db.admin.reindex.limits import CheckedLimit, check_limits, raise_if_exceeded
from nearsim_db.errors import LimitsExceededError, RecipeError


@pytest.mark.parametrize(
    ("text", "live", "most"),
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
def test_limits_decide_exactly(text: str | float, live: int, most: int) -> None:
    limit = Limit.parse(text)
    assert not limit.is_exceeded(most, live)
    assert limit.is_exceeded(most + 1, live)
    assert Limit.parse(limit) is limit and limit.text == str(text)


@pytest.mark.parametrize("text", ["", "%", "some", "-1", "-0.1%", "1/3", "1_0", "nan", "inf", "٣"])
def test_invalid_limits_are_refused(text: str) -> None:
    with pytest.raises(RecipeError, match=r"give a share as 0\.1%"):
        Limit.parse(text)


@pytest.mark.parametrize("text", ["101%", "1.5"])
def test_limits_above_all_apply_only_to_gains(text: str) -> None:
    for name in ("lost", "rescored", "split"):
        with pytest.raises(RecipeError, match=f"a limit of {text} {name} is more than 100 %"):
            Limits.parse(**{name: text})
    assert list(Limits.parse(gained=text, merged=text).by_name) == ["gained", "merged"]
    assert not Limit.parse("300%").is_exceeded(30, 10) and Limit.parse("300%").is_exceeded(31, 10)


def test_exceeded_limits_are_named() -> None:
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
