"""Shinglings: the schemes and sizes of shingles to compare, and the choice of the best."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nearsim_db.analysis.tuning.distinct_sets import DistinctSets, distinct_sets
from nearsim_db.analysis.tuning.pair_sample import PairSample, sample_pairs
from nearsim_db.records import Progress
from nearsim_db.similarity import presets
from nearsim_db.similarity.arrays import Floats, Ints
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.k_rule import KRule, Units, Verdict
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.recipe_warnings import NOTABLE_SHARE

_SIZES = {"word": range(1, 6), "char": range(3, 10), "bag": range(1, 2)}
_RECORDS = presets.load("records")
_RECORD_WORDS = 60  # the most of a typical document
_RECORD_DISTINCT = 0.75  # the least share of a document's words that are distinct
_FEWEST_RECORDS = 100
FEWEST_NEAR = 10
_ALIKE = 0.03  # gaps this close are equal: another sample could rank them differently
ALIKE_F1 = 0.005
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
    schemes = [own[0]] if "scheme" in kept else [one for one in _SIZES if one != "bag" or own[0] != "bag"]
    found = [
        (scheme, k) for scheme in schemes for k in ([own[1]] if "k" in kept else _SIZES.get(scheme, [own[1]]))
    ]
    return found if own in found else [*found, own]


def records_start(recipe: Recipe, words: Units, kept: frozenset[str]) -> Recipe | None:
    """Return the recipe with shingles, threshold and linkage of the preset records if the texts look like records.

    Those are short, and few of their words recur within a text. None for others, and if the shingles were chosen.
    """
    default = Recipe().shingle
    is_chosen = kept or (recipe.shingle.scheme, recipe.shingle.k) != (default.scheme, default.k)
    if is_chosen or len(words.lengths) < _FEWEST_RECORDS or words.distinct < _RECORD_DISTINCT:
        return None
    if not 0 < words.typical_length <= _RECORD_WORDS:
        return None
    shingle = _RECORDS.shingle
    started = with_shingles(recipe, shingle.scheme, shingle.k)
    rules = [f"match.threshold={_RECORDS.match.threshold!r}", f"cluster.linkage={_RECORDS.cluster.linkage}"]
    return override(started, rules)


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
        best = _widest([one for one in scored if (one.best_f1 or 0.0) >= most - ALIKE_F1], own)
        return best, f"the highest F1 on the labelled pairs, {best.best_f1:.3f}"
    verdicts: tuple[Verdict, ...] = ("ok", "warning", "problem")
    # Single words, bags and characters are listed for comparison only: they ignore order.
    ordered = [one for one in scored if one.scheme != "bag" or one.scheme == own[0]]
    longer = [one for one in ordered if (one.scheme, one.k) not in (("word", 1), ("char", 1))] or scored
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


CHARACTERS_SCORED = 1_500_000
# Near pairs are those above the first of these similarities that has enough pairs.
_NEAR = (0.8, 0.7, 0.6)
_ENOUGH = 30
_RANDOM = 0.5
_RANDOM_PAIRS, _NEAR_PAIRS = 12_000, 600


@dataclass(frozen=True, slots=True)
class ReferencePairs:
    """Texts with near and random pairs of them, as row indexes into the texts."""

    texts: list[str]
    near: tuple[Ints, Ints]
    random: tuple[Ints, Ints]

    @property
    def near_pairs(self) -> int:
        """Number of near pairs."""
        return len(self.near[0])


def find_reference_pairs(
    recipe: Recipe, texts: Sequence[str], unspaced: bool, seed: int, threads: int, progress: Progress
) -> ReferencePairs:
    """Draw near and random pairs by a neutral scheme: 5 characters, or 3 in scripts without spaces."""
    encoder = Encoder(resolve(with_shingles(recipe, "char", 3 if unspaced else 5)))
    sets = distinct_sets(encoder, texts, threads, progress)
    pairs = sample_pairs(sets, seed, random_pairs=50_000, near_pairs=300_000)
    generator = np.random.Generator(np.random.PCG64(random_words(seed, "tune test pairs", 4)))
    mean = max(float(np.mean([len(text) for text in texts])) if texts else 1.0, 1.0)
    near = _draw_near(pairs, generator, int(min(_NEAR_PAIRS, max(50, CHARACTERS_SCORED / 2 / mean))))
    random = _draw_random(sets, generator, int(min(500, max(60, CHARACTERS_SCORED / mean))))
    used, places = np.unique(np.concatenate((*near, *random)), return_inverse=True)
    first = np.full(len(sets), -1, np.int64)
    rows = np.flatnonzero(sets.set_of >= 0)[::-1]
    first[sets.set_of[rows]] = rows
    parts = np.split(places.astype(np.int64), np.cumsum([len(near[0]), len(near[1]), len(random[0])]))
    return ReferencePairs(
        [texts[row] for row in first[used].tolist()], (parts[0], parts[1]), (parts[2], parts[3])
    )


def _draw_near(pairs: PairSample, generator: np.random.Generator, most: int) -> tuple[Ints, Ints]:
    level = next((one for one in _NEAR if (pairs.similarity >= one).sum() >= _ENOUGH), _NEAR[-1])
    near = np.flatnonzero(pairs.similarity >= level)
    if len(near) > most:
        share = pairs.weight[near] / pairs.weight[near].sum()
        near = np.sort(generator.choice(near, most, replace=False, p=share))
    return pairs.left[near], pairs.right[near]


def _draw_random(sets: DistinctSets, generator: np.random.Generator, most: int) -> tuple[Ints, Ints]:
    """Draw random pairs within a subset of at most `most` sets, so that few texts are shingled.

    Pairs with similarity 0.5 or more are dropped.
    """
    chosen = generator.permutation(len(sets))[:most]
    if len(chosen) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    left, right = generator.integers(0, len(chosen), (2, _RANDOM_PAIRS))
    different = left != right
    left, right = chosen[left[different]], chosen[right[different]]
    random = sets.similarities(left, right) < _RANDOM
    return left[random], right[random]


def score(
    recipe: Recipe,
    schemes: Sequence[tuple[str, int]],
    pairs: ReferencePairs,
    units: dict[str, Units],
    threads: int,
    progress: Progress,
) -> Iterator[Shingling]:
    """Score each (scheme, k) on the same pairs."""
    for done, (scheme, k) in enumerate(schemes, 1):
        sets = distinct_sets(Encoder(resolve(with_shingles(recipe, scheme, k))), pairs.texts, threads)
        near, random = similarities(sets, *pairs.near), similarities(sets, *pairs.random)
        unit = units[unit_of(scheme)]
        size = 1 if scheme == "bag" else k
        yield Shingling(
            scheme,
            k,
            float(np.quantile(near, 0.25)) if len(near) else 0.0,
            float(np.quantile(random, 0.999)) if len(random) else 0.0,
            float(np.median(sets.sizes)) if len(sets) else 0.0,
            KRule(unit.alphabet, size, unit.typical_length),
            unit.short(size),
        )
        progress("judge", done, len(schemes))


def similarities(sets: DistinctSets, left: Ints, right: Ints) -> Floats:
    """Return the similarities of pairs of documents; 0 if either has no features."""
    ends = sets.set_of[left], sets.set_of[right]
    found = np.zeros(len(left))
    some = (ends[0] >= 0) & (ends[1] >= 0)
    found[some] = sets.similarities(ends[0][some], ends[1][some])
    return found


def draw_texts(texts: Sequence[str], seed: int) -> list[str]:
    """Draw a bounded number of the texts, for counting characters and words."""
    generator = np.random.Generator(np.random.PCG64(random_words(seed, "tune units", 4)))
    chosen: Ints = generator.permutation(len(texts))[:2_000]
    found: list[str] = []
    size = 0
    for row in chosen.tolist():
        found.append(texts[row])
        size += len(texts[row])
        if size > CHARACTERS_SCORED:
            break
    return found
