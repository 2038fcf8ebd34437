"""Limits on how much two generations may differ for one to replace the other."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction

from nearsim_db.errors import LimitsExceededError, RecipeError

_EXAMPLES = "give a share as 0.1% or 0.001, or a count such as 25"
# These differences are parts of the live generation, so at most 100 % of it; gained and merged may exceed it.
_PARTS_OF_LIVE = ("lost", "rescored", "split")


@dataclass(frozen=True, slots=True)
class Limit:
    """A maximum number of differences: a count, or a fraction of the live generation's pairs or clusters."""

    text: str  # as the user wrote it
    share: Fraction | None  # None if it is a count
    count: int | None  # None if it is a fraction

    @classmethod
    def parse(cls, value: "str | float | Limit") -> "Limit":
        """Parse a limit: 0.1% and 0.001 are fractions; 25, a whole number without a decimal point, is a count.

        Raises RecipeError for anything else.
        """
        if isinstance(value, Limit):
            return value

        text = str(value).strip()
        is_percent = text.endswith("%")
        number = text.removesuffix("%").strip()
        try:
            # Fraction would also parse 1/3 and 1_000.
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
        """Whether `changed`, a number of differences, exceeds the limit, computed without rounding.

        `live` is the number of pairs or clusters of the live generation.
        """
        maximum = self.count if self.share is None else self.share * live
        assert maximum is not None
        return changed > maximum


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on pairs lost, gained and re-scored, and on clusters merged and split; None means no limit."""

    lost: Limit | None = None
    gained: Limit | None = None
    rescored: Limit | None = None
    merged: Limit | None = None
    split: Limit | None = None

    def __post_init__(self) -> None:
        for name in _PARTS_OF_LIVE:
            limit: Limit | None = getattr(self, name)
            if limit is not None and limit.share is not None and limit.share > 1:
                raise RecipeError(f"a limit of {limit.text} {name} is more than 100 %; {_EXAMPLES}")

    @classmethod
    def parse(cls, **values: "str | float | Limit | None") -> "Limits":
        """Parse limits by name, such as Limits.parse(lost="0.1%", split=25). Raises the errors of `Limit.parse`."""
        return cls(**{name: None if limit is None else Limit.parse(limit) for name, limit in values.items()})

    @property
    def by_name(self) -> dict[str, Limit]:
        """The limits that are set."""
        limits = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: limit for name, limit in limits.items() if limit is not None}


@dataclass(frozen=True, slots=True)
class CheckedLimit:
    """A limit, compared with the differences between two generations."""

    limit: str  # name of the limit
    allowed: str  # the limit as the user wrote it
    found: int  # number of differences
    live: int  # number of pairs or clusters of the live generation
    found_share: float | None  # `found` as a fraction of `live`, None if `live` is 0
    exceeded: bool


NO_LIMITS = Limits()


def check_limits(
    limits: Limits, changed: Mapping[str, int], live: Mapping[str, int]
) -> tuple[CheckedLimit, ...]:
    """Compare limits with the numbers of differences, `changed`; both mappings have the names of the limits.

    `live` has the number of pairs or clusters of the live generation to which each limit applies.
    """
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
    """Raise LimitsExceededError, which names the command that shows the differences, if any limit is exceeded."""
    exceeded = []
    for limit in checked:
        if limit.exceeded:
            share = "" if limit.found_share is None else f" ({100 * limit.found_share:.4g} %)"
            allowed = f"where {limit.allowed} is allowed"
            exceeded.append(f"{limit.limit} {limit.found:,} of {limit.live:,}{share} {allowed}")
    if exceeded:
        raise LimitsExceededError(
            f"generation {generation_id} was not promoted: {', '.join(exceeded)}; nothing was changed. To see the "
            f"differences: {diff_command}",
            profile,
            checked,
        )
