"""The algebra of amplification: hash functions combined by "all agree" and "any agrees".

Read from the outside in: or_(4, and_(4)) calls a pair alike if any of 4 groups of 4 functions agrees
throughout. The slides of Stanford's CS246 name constructions in the order they are applied, so that one is
their AND-OR.
"""

from dataclasses import dataclass
from typing import Literal

from nearsim_db.errors import RecipeError


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
    def of_minhash(cls, near_distance: float, far_distance: float) -> "Sensitivity":
        """MinHash is (d1, d2, 1 - d1, 1 - d2)-sensitive for any Jaccard distances d1 < d2."""
        return cls(near_distance, far_distance, 1 - near_distance, 1 - far_distance)


@dataclass(frozen=True, slots=True)
class Amplification:
    """`count` copies of `inner` (None: one base function), of which "and" wants all, "or" any, to agree."""

    kind: Literal["and", "or"]
    count: int
    inner: "Amplification | None" = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise RecipeError(f"{self.kind}({self.count}) is impossible; combine 1 function or more")

    @property
    def functions(self) -> int:
        """How many base functions the construction uses."""
        return self.count * (self.inner.functions if self.inner else 1)

    def probability(self, base: float) -> float:
        """The probability that a pair agrees, where one base function agrees with probability `base`."""
        once = self.inner.probability(base) if self.inner else base
        return float(once**self.count if self.kind == "and" else 1 - (1 - once) ** self.count)

    def applied_to(self, family: Sensitivity) -> Sensitivity:
        """The sensitivity of the family that this construction makes of another."""
        return Sensitivity(
            family.near_distance,
            family.far_distance,
            self.probability(family.near_probability),
            self.probability(family.far_probability),
        )


def and_(count: int, inner: Amplification | None = None) -> Amplification:
    """All of `count` must agree: p becomes p^count."""
    return Amplification("and", count, inner)


def or_(count: int, inner: Amplification | None = None) -> Amplification:
    """Any of `count` must agree: p becomes 1 - (1 - p)^count."""
    return Amplification("or", count, inner)
