"""The algebra of amplification: hash functions combined by "all agree", "any agrees" and "at least m agree".

Read from the outside in: or_(4, and_(4)) calls a pair alike if any of 4 groups of 4 functions agrees throughout. The
slides of Stanford's CS246 name constructions in the order in which they are applied, so that one is their AND-OR.

In an index the functions are the values of a sketch, and the innermost "and" is a band: its rows are hashed together.
Every construction is monotone, and without a shared band it never agrees: so the candidates of any are among the
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
    """A (d1, d2, p1, p2)-sensitive family: what it promises of near and of far pairs.

    Pairs at a distance of at most `near_distance` agree with probability at least `near_probability`, pairs
    at `far_distance` or more with at most `far_probability`.
    """

    near_distance: float
    far_distance: float
    near_probability: float
    far_probability: float

    @classmethod
    def of(
        cls, near_distance: float, far_distance: float, agreement: Callable[[float], float]
    ) -> "Sensitivity":
        """A family for which the probability of agreement falls with the distance, as `agreement` tells."""
        return cls(near_distance, far_distance, agreement(near_distance), agreement(far_distance))

    @classmethod
    def of_minhash(cls, near_distance: float, far_distance: float) -> "Sensitivity":
        """MinHash is (d1, d2, 1 - d1, 1 - d2)-sensitive for any Jaccard distances d1 < d2."""
        return cls.of(near_distance, far_distance, lambda distance: 1 - distance)

    @classmethod
    def of_hyperplanes(cls, near_degrees: float, far_degrees: float) -> "Sensitivity":
        """Random hyperplanes are (d1, d2, 1 - d1/180, 1 - d2/180)-sensitive for any angles d1 < d2 in degrees."""
        return cls.of(near_degrees, far_degrees, lambda degrees: 1 - degrees / 180)

    @classmethod
    def of_projections(cls, width: float) -> "Sensitivity":
        """A random line in the plane of two points, in buckets of width a: (a/2, 2a, 1/2, 1/3)-sensitive."""
        return cls(width / 2, 2 * width, 1 / 2, 1 / 3)


@dataclass(frozen=True, slots=True)
class Amplification:
    """`count` copies of `inner` (None: one base function), of which `least` must agree: all for "and", 1 for "or"."""

    kind: Kind
    count: int
    inner: "Amplification | None" = None
    least: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MAX_COUNT:
            raise RecipeError(
                f"{self.kind}({self.count}) is impossible; combine 1 function or more, at most {MAX_COUNT:,}"
            )
        if self.kind != "at_least":
            object.__setattr__(self, "least", self.count if self.kind == "and" else 1)
        elif not 1 <= self.least <= self.count:
            raise RecipeError(
                f"at_least({self.least}, {self.count}) is impossible; ask for 1 to {self.count} of {self.count}"
            )

    def __str__(self) -> str:
        """As a recipe says it, from the outside in; `parse` reads it back."""
        wanted = f"{self.least}, {self.count}" if self.kind == "at_least" else str(self.count)
        return f"{self.kind}({wanted}, {self.inner})" if self.inner else f"{self.kind}({wanted})"

    @property
    def levels(self) -> tuple["Amplification", ...]:
        """The steps of the construction, the outermost first."""
        return (self, *self.inner.levels) if self.inner else (self,)

    @property
    def functions(self) -> int:
        """How many base functions the construction uses."""
        return self.count * (self.inner.functions if self.inner else 1)

    @property
    def rows(self) -> int:
        """How many functions make a band: those of the innermost "and", else 1."""
        innermost = self.levels[-1]
        return innermost.count if innermost.kind == "and" else 1

    @property
    def bands(self) -> int:
        """How many bands there are at the bottom."""
        return self.functions // self.rows

    @property
    def groupings(self) -> tuple["Amplification", ...]:
        """The steps above the bands, the outermost first."""
        return self.levels[:-1] if self.levels[-1].kind == "and" else self.levels

    @property
    def min_shared_bands(self) -> int | None:
        """How many shared bands meet the construction, wherever they are; None where it matters which they are."""
        match self.groupings:
            case ():
                return 1
            case (only,):
                return only.least
            case _:
                return None

    def probability(self, base: float) -> float:
        """The probability that a pair agrees, where one base function agrees with probability `base`."""
        once = self.inner.probability(base) if self.inner else base
        return binomial.at_least(self.least, self.count, once)

    def applied_to(self, family: Sensitivity) -> Sensitivity:
        """The sensitivity of the family that this construction makes of another."""
        return Sensitivity(
            family.near_distance,
            family.far_distance,
            self.probability(family.near_probability),
            self.probability(family.far_probability),
        )

    def evaluate(self, matched: NDArray[Any]) -> NDArray[np.bool_]:
        """Which pairs agree, by which of their bands do: (m, bands) of bool to bool of m.

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
    """`least` or more of `count` must agree: p becomes the upper tail of the binomial distribution."""
    return Amplification("at_least", count, inner, least)


def banding(bands: int, rows: int, min_shared_bands: int = 1) -> Amplification:
    """At least so many of b bands of r rows: an AND of r, and above it an OR, or m of b."""
    band = and_(rows) if rows > 1 else None
    return or_(bands, band) if min_shared_bands == 1 else at_least(min_shared_bands, bands, band)
