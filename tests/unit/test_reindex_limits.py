"""How much may differ: limits as people write them, decided exactly."""

import pytest

from nearsim_db.errors import LimitsExceededError, RecipeError
from nearsim_db.reindex import Limit, Limits
from nearsim_db.reindex.limits import check, refuse


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
    assert Limit.parse(limit) is limit and limit.told == str(told)


@pytest.mark.parametrize(
    "told", ["", "%", "some", "-1", "-0.1%", "1.5", "101%", "1/3", "1_0", "nan", "inf", "٣"]
)
def test_what_is_no_limit(told: str) -> None:
    with pytest.raises(RecipeError, match=r"give a share as 0\.1%"):
        Limit.parse(told)


def test_what_exceeds_is_refused_by_name() -> None:
    limits = Limits.of(lost="0.1%", split=2, gained=None)
    assert list(limits.given) == ["lost", "split"]
    checked = check(limits, {"lost": 2, "split": 2}, {"lost": 1_000, "split": 9})
    assert [(one.limit, one.allowed, one.found, one.exceeded) for one in checked] == [
        ("lost", "0.1%", 2, True),
        ("split", "2", 2, False),
    ]
    with pytest.raises(
        LimitsExceededError, match=r"generation 7 was not promoted: lost 2 where 0.1% is allowed;"
    ):
        refuse(7, checked)
    refuse(7, checked[1:])
