"""How much may differ between two generations before one is not to take the place of the other."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction

from nearsim_db.errors import LimitsExceededError, RecipeError

_EXAMPLES = "give a share as 0.1% or 0.001, or a count such as 25"
_PARTS = ("lost", "rescored", "split")  # of what the live generation has; the others may be more than that


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so much of something, as it was `told`: a `share` of what the live generation has, or a `count`."""

    told: str
    share: Fraction | None
    count: int | None

    @classmethod
    def parse(cls, value: "str | float | Limit") -> "Limit":
        """A limit of 0.1%, 0.001 (both a share) or 25 (a count); a whole number without a point is a count.

        Raises RecipeError for anything else.
        """
        if isinstance(value, Limit):
            return value
        told = str(value).strip()
        percent = told.endswith("%")
        number = told.removesuffix("%").strip()
        try:
            if not number.isascii() or "/" in number or "_" in number:
                raise ValueError
            read = Fraction(number)
        except (ValueError, ZeroDivisionError) as error:
            raise RecipeError(f"a limit of {told!r} cannot be read; {_EXAMPLES}") from error
        if read < 0:
            raise RecipeError(f"a limit of {told} is below 0; {_EXAMPLES}")
        if not percent and number.lstrip("+").isdigit():
            return cls(told, None, int(number))
        return cls(told, read / 100 if percent else read, None)

    def is_exceeded(self, found: int, whole: int) -> bool:
        """Whether more was found, of so many that the live generation has; decided exactly."""
        most = self.count if self.share is None else self.share * whole
        assert most is not None
        return found > most


@dataclass(frozen=True, slots=True)
class Limits:
    """At most so many pairs lost, gained and re-scored, clusters merged and split; None is as many as there are."""

    lost: Limit | None = None
    gained: Limit | None = None
    rescored: Limit | None = None
    merged: Limit | None = None
    split: Limit | None = None

    def __post_init__(self) -> None:
        for name in _PARTS:
            limit: Limit | None = getattr(self, name)
            if limit is not None and limit.share is not None and limit.share > 1:
                raise RecipeError(f"a limit of {limit.told} {name} is more than everything; {_EXAMPLES}")

    @classmethod
    def of(cls, **values: "str | float | Limit | None") -> "Limits":
        """Limits as people write them: Limits.of(lost="0.1%", split=25). Raises RecipeError for what is none."""
        return cls(**{name: None if one is None else Limit.parse(one) for name, one in values.items()})

    @property
    def given(self) -> dict[str, Limit]:
        """Those that are set, by name."""
        limits = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: limit for name, limit in limits.items() if limit is not None}


@dataclass(frozen=True, slots=True)
class CheckedLimit:
    """A limit by name, what it allows, as it was told, and what was found of so many `live` pairs or clusters.

    The share is None where there are none.
    """

    limit: str
    allowed: str
    found: int
    live: int
    found_share: float | None
    exceeded: bool


NO_LIMITS = Limits()


def check(limits: Limits, found: Mapping[str, int], wholes: Mapping[str, int]) -> tuple[CheckedLimit, ...]:
    """Limits held against what was found, of the pairs or clusters that the live generation has."""
    return tuple(_check(name, limit, found[name], wholes[name]) for name, limit in limits.given.items())


def _check(name: str, limit: Limit, found: int, whole: int) -> CheckedLimit:
    share = found / whole if whole else None
    return CheckedLimit(name, limit.told, found, whole, share, limit.is_exceeded(found, whole))


def refuse(generation_id: int, profile: str, checked: tuple[CheckedLimit, ...], to_compare: str) -> None:
    """Raise LimitsExceededError where any limit is exceeded; the command `to_compare` shows what differs."""
    over = [_told(one) for one in checked if one.exceeded]
    if over:
        raise LimitsExceededError(
            f"generation {generation_id} was not promoted: {', '.join(over)}; nothing was changed. Look at what "
            f"differs: {to_compare}",
            profile,
            checked,
        )


def _told(one: CheckedLimit) -> str:
    """As `lost 7 of 341 (2.053 %) where 0.1% is allowed`."""
    share = "" if one.found_share is None else f" ({100 * one.found_share:.4g} %)"
    return f"{one.limit} {one.found:,} of {one.live:,}{share} where {one.allowed} is allowed"
