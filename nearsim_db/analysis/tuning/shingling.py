"""Shinglings: the schemes and sizes of shingles to compare."""

from dataclasses import dataclass, replace

from nearsim_db.similarity.k_rule import KRule
from nearsim_db.similarity.recipe import Recipe, override

_SIZES = {"word": range(1, 6), "char": range(3, 10)}


@dataclass(frozen=True, slots=True)
class Shingling:
    """A shingling with its scores: similarities of near and random pairs, and the k rule.

    `near` is the lower quartile of near pairs, `random` the 99.9th percentile of random pairs.
    """

    scheme: str
    k: int
    near: float
    random: float
    shingles: float
    rule: KRule
    short: float
    best_f1: float | None = None

    @property
    def gap(self) -> float:
        """Distance between near and random pairs."""
        return self.near - self.random

    @property
    def name(self) -> str:
        """Name for people, e.g. "3 words"."""
        if self.scheme == "bag":
            return "bag of words"
        unit = {"word": "word", "char": "character", "sentence": "sentence"}[self.scheme]
        return f"{self.k} {unit}{'' if self.k == 1 else 's'}"

    def apply(self, recipe: Recipe) -> Recipe:
        """Return the recipe with this shingling; characters reset the options for words."""
        settings = [f"shingle.scheme={self.scheme}", f"shingle.k={self.k}"]
        return override(recipe, settings + wordless_settings(self.scheme))


def wordless_settings(scheme: str) -> list[str]:
    if scheme != "char":
        return []
    return ["shingle.stopwords=none", "shingle.stem=none", "shingle.min_token_length=1"]


def candidates(recipe: Recipe, kept: frozenset[str]) -> list[tuple[str, int]]:
    """Return the schemes and sizes to compare, including the recipe's own; keys in `kept` stay the recipe's."""
    own = (recipe.shingle.scheme, recipe.shingle.k)
    if kept == {"scheme", "k"}:
        return [own]
    schemes = [own[0]] if "scheme" in kept else list(_SIZES)
    found = [
        (scheme, k) for scheme in schemes for k in ([own[1]] if "k" in kept else _SIZES.get(scheme, [own[1]]))
    ]
    return found if own in found else [*found, own]


def unit_of(scheme: str) -> str:
    """Return the unit of a scheme's shingles: "char", "word" or "sentence"."""
    return {"char": "char", "sentence": "sentence"}.get(scheme, "word")


def with_f1(one: Shingling, f1: float) -> Shingling:
    """Return the shingling with the F1 of the labelled pairs."""
    return replace(one, best_f1=f1)
