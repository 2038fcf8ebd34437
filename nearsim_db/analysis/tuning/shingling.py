"""Shinglings: the schemes and sizes of shingles to compare, and the choice of the best."""

from collections.abc import Sequence
from dataclasses import dataclass

from nearsim_db.similarity.k_rule import KRule, Verdict
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.recipe_warnings import NOTABLE_SHARE

_SIZES = {"word": range(1, 6), "char": range(3, 10)}
FEWEST_NEAR = 10
_ALIKE = 0.03  # gaps this close are equal: another sample could rank them differently
_ALIKE_F1 = 0.005
_WORDS_COST_LESS = 0.1  # a fifth of the shingles: characters must widen the gap by this much
_QUIET = 0.2


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
        return with_shingles(recipe, self.scheme, self.k)


def with_shingles(recipe: Recipe, scheme: str, k: int) -> Recipe:
    """Return the recipe with other shingles; characters reset the options for words."""
    settings = [f"shingle.scheme={scheme}", f"shingle.k={k}"]
    if scheme == "char":
        settings += ["shingle.stopwords=none", "shingle.stem=none", "shingle.min_token_length=1"]
    return override(recipe, settings)


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


def choose(
    scored: Sequence[Shingling], near_pairs: int, unspaced: float, own: tuple[str, int]
) -> tuple[Shingling, str]:
    """Return the best shingling, and the reason."""
    if len(scored) == 1:
        return scored[0], "given"
    if scored[0].best_f1 is not None:
        most = max(one.best_f1 or 0.0 for one in scored)
        best = _widest([one for one in scored if (one.best_f1 or 0.0) >= most - _ALIKE_F1], own)
        return best, f"the highest F1 on the labelled pairs, {best.best_f1:.3f}"
    verdicts: tuple[Verdict, ...] = ("ok", "warning", "problem")
    # Single words and characters are listed for comparison only: they ignore order.
    longer = [one for one in scored if (one.scheme, one.k) not in (("word", 1), ("char", 1))] or scored
    sound = next(found for v in verdicts if (found := [one for one in longer if one.rule.verdict == v]))
    words = [one for one in sound if one.scheme == "word" and one.short < NOTABLE_SHARE]
    if unspaced >= NOTABLE_SHARE:
        words = []
    characters = [one for one in sound if one.scheme == "char"]
    if near_pairs < FEWEST_NEAR:
        return _without_near_pairs(words or characters or sound, own)
    others = [one for one in sound if one.scheme not in ("word", "char")]
    found = [_widest(group, own) for group in (words, characters) if group] or [_widest(others or sound, own)]
    best = found[0]
    if len(found) == 2 and found[1].gap > found[0].gap + _WORDS_COST_LESS:
        best = found[1]
    return best, _reason(best, found, bool(words), unspaced)


def _widest(group: Sequence[Shingling], own: tuple[str, int]) -> Shingling:
    """Return the recipe's own shingling if its gap is among the widest, otherwise the shortest of those."""
    most = max(one.gap for one in group)
    widest = [one for one in group if one.gap >= most - _ALIKE]
    return min(widest, key=lambda one: ((one.scheme, one.k) != own, one.k))


def _without_near_pairs(group: Sequence[Shingling], own: tuple[str, int]) -> tuple[Shingling, str]:
    kept = [one for one in group if (one.scheme, one.k) == own]
    quiet = [one for one in group if one.random <= _QUIET and one.rule.verdict == "ok"]
    best = (kept or sorted(quiet or group, key=lambda one: one.k if quiet else one.random))[0]
    why = "the recipe's own" if kept else "the shortest that random pairs rarely share"
    return best, f"{why}; there are too few near pairs to score"


def _reason(best: Shingling, found: Sequence[Shingling], words: bool, unspaced: float) -> str:
    scores = f"near pairs from {best.near:.2f}, random ones up to {best.random:.2f}"
    if best.scheme == "char" and not words:
        why = "the script has no spaces" if unspaced >= NOTABLE_SHARE else "the texts are too short for words"
        return f"{scores}; {why}"
    if best.scheme == "word" and len(found) == 2:
        other = found[1]
        return f"{scores}; {other.name} give a gap of {other.gap:.2f} instead of {best.gap:.2f}, with more shingles"
    return scores
