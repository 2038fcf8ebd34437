"""Amplification: hash functions combined by "all agree", "any agrees" and "at least m agree".

A construction is read from the outside in: or_(4, and_(4)) accepts a pair if all functions agree in any of 4 groups of
4 functions. The slides of Stanford's CS246 name the steps in the order of their application, which is the reverse: they
call or_(4, and_(4)) AND-OR, and and_(4, or_(4)) OR-AND.

In an index the functions are the values of a sketch, and the innermost "and" is a band, whose rows are hashed together.
Every construction is monotone and rejects a pair that shares no band, so the documents of a candidate always share a
bucket.

Recipes write the same constructions as "or(4, and(4))" and "and(4, or(4))". "or(40, and(3))" means any of 40 bands of 3
rows, and "at_least(3, 40, and(3))" means at least 3 of these bands.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.arrays import Mask

_NEGLIGIBLE = 1e-18


def upper_tail(least: int, trials: int, chance: float) -> float:
    """Return the probability of at least `least` successes in `trials` trials with the probability `chance` each.

    It is the sum over i >= m of C(n, i) p^i (1 - p)^(n - i) for m of n trials. Only the smaller tail of the
    distribution is summed, so nothing overflows, and results close to 0 or 1 keep their precision.
    """
    if least <= 0 or chance >= 1:
        return float(least <= trials)
    if least > trials or chance <= 0:
        return 0.0
    if least == 1:
        return -math.expm1(trials * math.log1p(-chance))
    if least == trials:
        return math.pow(chance, trials)
    if least > trials * chance:
        return _sum_up(least, trials, chance)
    return 1 - _sum_up(trials - least + 1, trials, 1 - chance)


def _sum_up(least: int, trials: int, chance: float) -> float:
    """Sum the terms of the tail, beginning with the largest term."""
    odds = chance / (1 - chance)
    term = math.exp(
        _log_choose(trials, least) + least * math.log(chance) + (trials - least) * math.log1p(-chance)
    )
    total = term
    for count in range(least, trials):
        term *= (trials - count) / (count + 1) * odds
        total += term
        if term < total * _NEGLIGIBLE:
            break
    return min(total, 1.0)


def _log_choose(n: int, i: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)


Kind = Literal["and", "or", "at_least"]

MAX_COUNT = 65_536
MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """A (d1, d2, p1, p2)-sensitive family: its bounds for near and for far pairs."""

    near_distance: float  # the largest distance of a near pair
    far_distance: float  # the smallest distance of a far pair
    near_probability: float  # the least probability that a near pair agrees
    far_probability: float  # the largest probability that a far pair agrees

    @classmethod
    def of(
        cls, near_distance: float, far_distance: float, agreement: Callable[[float], float]
    ) -> "Sensitivity":
        """Return the sensitivity of a family whose probability of agreement decreases with the distance.

        `agreement` maps a distance to the probability that two documents at this distance agree.
        """
        return cls(near_distance, far_distance, agreement(near_distance), agreement(far_distance))


@dataclass(frozen=True, slots=True)
class Amplification:
    """A step of a construction: several copies of an inner construction, some of which must agree."""

    kind: Kind
    count: int  # number of copies
    inner: "Amplification | None" = None  # the construction that is copied, or None for a base function
    least: int = 0  # number of copies that must agree: all for "and", 1 for "or"

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MAX_COUNT:
            raise RecipeError(
                f"{self.kind}({self.count}) is out of range; combine 1 to {MAX_COUNT:,} functions"
            )
        if self.kind != "at_least":
            object.__setattr__(self, "least", self.count if self.kind == "and" else 1)
        elif not 1 <= self.least <= self.count:
            raise RecipeError(
                f"at_least({self.least}, {self.count}) is out of range; require 1 to {self.count} of {self.count}"
            )

    def __str__(self) -> str:
        """Return the notation of recipes, from the outside in, which `parse` reads."""
        arguments = f"{self.least}, {self.count}" if self.kind == "at_least" else str(self.count)
        return f"{self.kind}({arguments}, {self.inner})" if self.inner else f"{self.kind}({arguments})"

    @property
    def levels(self) -> tuple["Amplification", ...]:
        """The steps of the construction, outermost first."""
        return (self, *self.inner.levels) if self.inner else (self,)

    @property
    def functions(self) -> int:
        """The number of base functions."""
        return self.count * (self.inner.functions if self.inner else 1)

    @property
    def rows(self) -> int:
        """The number of functions in a band: the count of the innermost "and", or 1 if the innermost step is
        another.
        """
        innermost = self.levels[-1]
        return innermost.count if innermost.kind == "and" else 1

    @property
    def bands(self) -> int:
        """The number of bands."""
        return self.functions // self.rows

    @property
    def groupings(self) -> tuple["Amplification", ...]:
        """The steps above the bands, outermost first."""
        return self.levels[:-1] if self.levels[-1].kind == "and" else self.levels

    @property
    def min_shared_bands(self) -> int | None:
        """The number of shared bands that satisfies the construction, or None if it also matters which bands
        they are.
        """
        match self.groupings:
            case ():
                return 1
            case (only,):
                return only.least
            case _:
                return None

    def probability(self, base: float) -> float:
        """Return the probability that a pair agrees, if each base function agrees with probability `base`."""
        each = self.inner.probability(base) if self.inner else base
        return upper_tail(self.least, self.count, each)

    def evaluate(self, matched: NDArray[Any]) -> Mask:
        """Return which pairs agree, from the bands that they share: (m, bands) of bool to bool of m.

        The copies of a step have consecutive bands: the first copy has the first bands.
        """
        agreeing = matched
        for step in reversed(self.groupings):
            groups = agreeing.reshape(len(matched), agreeing.shape[1] // step.count, step.count)
            agreeing = np.count_nonzero(groups, axis=2) >= step.least
        whole: Mask = agreeing[:, 0].astype(bool, copy=False)
        return whole


def and_(count: int, inner: Amplification | None = None) -> Amplification:
    """Return the step in which all of `count` copies must agree: p becomes p^count."""
    return Amplification("and", count, inner)


def or_(count: int, inner: Amplification | None = None) -> Amplification:
    """Return the step in which any of `count` copies must agree: p becomes 1 - (1 - p)^count."""
    return Amplification("or", count, inner)


def at_least(least: int, count: int, inner: Amplification | None = None) -> Amplification:
    """Return the step in which at least `least` of `count` copies must agree: p becomes `upper_tail` of p."""
    return Amplification("at_least", count, inner, least)


def banding(bands: int, rows: int, min_shared_bands: int = 1) -> Amplification:
    """Return the construction in which at least `min_shared_bands` of `bands` bands of `rows` rows agree."""
    band = and_(rows) if rows > 1 else None
    return or_(bands, band) if min_shared_bands == 1 else at_least(min_shared_bands, bands, band)


_TOKEN = re.compile(r"\s*(?:(?P<word>[A-Za-z_]+)|(?P<number>[0-9]+)|(?P<sign>[(),])|(?P<other>\S)|$)")
_KINDS = ("and", "or", "at_least")
_MAX_NUMBER_DIGITS = 9


def parse(text: str) -> Amplification:
    """Parse an amplification such as "or(4, and(4, or(4)))".

    Raises RecipeError for a syntax error, with its position in characters from 1.
    """
    return _Parser(text).parse()


class _Parser:
    """A recursive-descent parser for one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match for match in _TOKEN.finditer(text) if match.lastgroup]
        self._at = 0

    def parse(self) -> Amplification:
        amplification = self._amplification(1)
        if self._at < len(self._tokens):
            self._fail("the end")
        return amplification

    def _amplification(self, depth: int) -> Amplification:
        start = self._at
        kind = self._take(
            "word", "and, or, at_least" if depth > 1 else "and(n), or(n) or at_least(m, n)", _KINDS
        )
        if depth > MAX_DEPTH:
            self._at = start
            self._fail(f"at most {MAX_DEPTH} steps")

        self._take("sign", "(", ("(",))
        least = count = self._number()
        if kind == "at_least":
            self._take("sign", "a comma and the count", (",",))
            count = self._number()

        inner = None
        if self._take("sign", "a comma or )", (",", ")")) == ",":
            inner = self._amplification(depth + 1)
            self._take("sign", ")", (")",))

        try:
            return Amplification(cast(Kind, kind), count, inner, least if kind == "at_least" else 0)
        except RecipeError as error:
            raise RecipeError(f"{self._where(start)}: {error}") from error

    def _number(self) -> int:
        return int(self._take("number", f"a whole number of at most {_MAX_NUMBER_DIGITS} digits"))

    def _take(self, kind: str, expected: str, allowed: tuple[str, ...] | None = None) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if token is None or token.lastgroup != kind:
            self._fail(expected)
        text = token[kind]
        is_too_long = kind == "number" and len(text) > _MAX_NUMBER_DIGITS
        if (allowed is not None and text not in allowed) or is_too_long:
            self._fail(expected)
        self._at += 1
        return text

    def _fail(self, expected: str) -> NoReturn:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        actual = "the end" if token is None else repr(token[0].strip()[:20])
        raise RecipeError(
            f"{self._where(self._at)}: expected {expected}, found {actual}; "
            'amplifications are written from the outside in, as in "or(40, and(3))" for 40 bands of 3 rows, '
            '"and(4, or(4))" or "at_least(3, 40, and(3))"'
        )

    def _where(self, at: int) -> str:
        token = self._tokens[at] if at < len(self._tokens) else None
        place = len(self._text) if token is None else token.start(token.lastgroup or 0)
        return f"the amplification {self._text[:200]!r} at character {place + 1}"
