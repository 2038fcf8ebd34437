"""Amplification: hash functions combined by "all agree", "any agrees" and "at least m agree".

Constructions are read from the outside in: or_(4, and_(4)) accepts a pair if any of 4 groups of 4 functions
agrees throughout. The slides of Stanford's CS246 name the steps in the order of application and call this one
AND-OR.

In an index the functions are the values of a sketch, and the innermost "and" is a band, whose rows are hashed
together. Every construction is monotone and rejects a pair that shares no band, so its candidates are always
documents that share a bucket.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.lsh import binomial

Kind = Literal["and", "or", "at_least"]

MAX_COUNT = 65_536
MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """A (d1, d2, p1, p2)-sensitive family: its bounds for near and for far pairs.

    Pairs at a distance of at most `near_distance` agree with probability at least `near_probability`, pairs at
    `far_distance` or more with probability at most `far_probability`.
    """

    near_distance: float
    far_distance: float
    near_probability: float
    far_probability: float

    @classmethod
    def of(
        cls, near_distance: float, far_distance: float, agreement: Callable[[float], float]
    ) -> "Sensitivity":
        """Return the sensitivity of a family whose probability of agreement falls with the distance.

        `agreement` maps a distance to that probability.
        """
        return cls(near_distance, far_distance, agreement(near_distance), agreement(far_distance))


@dataclass(frozen=True, slots=True)
class Amplification:
    """`count` copies of `inner` (None: one base function), of which at least `least` must agree.

    `least` is `count` for "and" and 1 for "or".
    """

    kind: Kind
    count: int
    inner: "Amplification | None" = None
    least: int = 0

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
        """Return the notation used in recipes, from the outside in; `parse` reads it."""
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
        """The number of functions in a band: the count of the innermost "and", else 1."""
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
        """The number of shared bands that satisfies the construction, or None where their positions matter."""
        match self.groupings:
            case ():
                return 1
            case (only,):
                return only.least
            case _:
                return None

    def probability(self, base: float) -> float:
        """Return the probability that a pair agrees, if one base function agrees with probability `base`."""
        each = self.inner.probability(base) if self.inner else base
        return binomial.at_least(self.least, self.count, each)

    def evaluate(self, matched: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which pairs agree, given which bands they share: (m, bands) of bool to bool of m.

        The groups of a step are consecutive: the first of b copies has the first bands.
        """
        agreeing = matched
        for step in reversed(self.groupings):
            groups = agreeing.reshape(len(matched), agreeing.shape[1] // step.count, step.count)
            agreeing = np.count_nonzero(groups, axis=2) >= step.least
        whole: NDArray[np.bool_] = agreeing[:, 0].astype(bool, copy=False)
        return whole


def and_(count: int, inner: Amplification | None = None) -> Amplification:
    """All of `count` must agree: p becomes p^count."""
    return Amplification("and", count, inner)


def or_(count: int, inner: Amplification | None = None) -> Amplification:
    """Any of `count` must agree: p becomes 1 - (1 - p)^count."""
    return Amplification("or", count, inner)


def at_least(least: int, count: int, inner: Amplification | None = None) -> Amplification:
    """At least `least` of `count` must agree: p becomes the upper tail of the binomial distribution."""
    return Amplification("at_least", count, inner, least)


def banding(bands: int, rows: int, min_shared_bands: int = 1) -> Amplification:
    """At least `min_shared_bands` of `bands` bands of `rows` rows: an AND of rows below an OR, or m of b."""
    band = and_(rows) if rows > 1 else None
    return or_(bands, band) if min_shared_bands == 1 else at_least(min_shared_bands, bands, band)
