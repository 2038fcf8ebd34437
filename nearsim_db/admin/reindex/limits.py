"""Limits on how much two generations may differ for one to replace the other."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction

from nearsim_db.errors import LimitsExceededError, RecipeError

_EXAMPLES = "give a share as 0.1% or 0.001, or a count such as 25"
_PARTS = (
    "lost",
    "rescored",
    "split",
)  # at most all of the live generation's; gained and merged may exceed it


@dataclass(frozen=True, slots=True)
class Limit:
    """A maximum as the user wrote it (`text`): a `share` of what the live generation has, or a `count`."""

    text: str
    share: Fraction | None
    count: int | None

    @classmethod
    def parse(cls, value: "str | float | Limit") -> "Limit":
        """Parse a limit: 0.1% and 0.001 are shares; 25, a whole number without a point, is a count.

        Raises RecipeError for anything else.
        """
        if isinstance(value, Limit):
            return value
        text = str(value).strip()
        is_percent = text.endswith("%")
        number = text.removesuffix("%").strip()
        try:
            if not number.isascii() or "/" in number or "_" in number:
                raise ValueError
            parsed = Fraction(number)
        except (ValueError, ZeroDivisionError) as error:
            raise RecipeError(f"cannot parse the limit {text!r}; {_EXAMPLES}") from error
        if parsed < 0:
            raise RecipeError(f"a limit of {text} is below 0; {_EXAMPLES}")
        if not is_percent and number.lstrip("+").isdigit():
            return cls(text, None, int(number))
        return cls(text, parsed / 100 if is_percent else parsed, None)

    def is_exceeded(self, changed: int, live: int) -> bool:
        """Whether more changed than allowed, of as many as the live generation has; decided exactly."""
        most = self.count if self.share is None else self.share * live
        assert most is not None
        return changed > most


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on pairs lost, gained and re-scored, and on clusters merged and split; None is no limit."""

    lost: Limit | None = None
    gained: Limit | None = None
    rescored: Limit | None = None
    merged: Limit | None = None
    split: Limit | None = None

    def __post_init__(self) -> None:
        for name in _PARTS:
            limit: Limit | None = getattr(self, name)
            if limit is not None and limit.share is not None and limit.share > 1:
                raise RecipeError(f"a limit of {limit.text} {name} is more than 100 %; {_EXAMPLES}")

    @classmethod
    def parse(cls, **values: "str | float | Limit | None") -> "Limits":
        """Parse limits by name, as Limits.parse(lost="0.1%", split=25). Raises RecipeError as `Limit.parse` does."""
        return cls(**{name: None if one is None else Limit.parse(one) for name, one in values.items()})

    @property
    def by_name(self) -> dict[str, Limit]:
        """The limits that are set."""
        limits = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: limit for name, limit in limits.items() if limit is not None}


@dataclass(frozen=True, slots=True)
class CheckedLimit:
    """A limit by name, what it allows, and what was found, of as many as the live generation has.

    The share is None if it has none.
    """

    limit: str
    allowed: str
    found: int
    live: int
    found_share: float | None
    exceeded: bool


NO_LIMITS = Limits()


def check_limits(
    limits: Limits, changed: Mapping[str, int], live: Mapping[str, int]
) -> tuple[CheckedLimit, ...]:
    """Compare limits with what changed; `live` has the pairs or clusters of the live generation, by the same names."""
    return tuple(
        CheckedLimit(
            name,
            limit.text,
            changed[name],
            live[name],
            changed[name] / live[name] if live[name] else None,
            limit.is_exceeded(changed[name], live[name]),
        )
        for name, limit in limits.by_name.items()
    )


def raise_if_exceeded(
    generation_id: int, profile: str, checked: tuple[CheckedLimit, ...], diff_command: str
) -> None:
    """Raise LimitsExceededError if any limit is exceeded, naming the command that shows the differences."""
    exceeded = []
    for one in checked:
        if one.exceeded:
            share = "" if one.found_share is None else f" ({100 * one.found_share:.4g} %)"
            allowed = f"where {one.allowed} is allowed"
            exceeded.append(f"{one.limit} {one.found:,} of {one.live:,}{share} {allowed}")
    if exceeded:
        raise LimitsExceededError(
            f"generation {generation_id} was not promoted: {', '.join(exceeded)}; nothing was changed. To see the "
            f"differences: {diff_command}",
            profile,
            checked,
        )
