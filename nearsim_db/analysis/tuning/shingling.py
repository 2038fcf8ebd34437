"""Which shingles part near pairs from random ones best."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.tuning.checks import KRule, Units, Verdict, units_of
from nearsim_db.analysis.tuning.distinct import DistinctSets, Floats, Ints, distinct_sets
from nearsim_db.analysis.tuning.pair_sample import PairSample, sample_pairs
from nearsim_db.records import Progress
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.recipe_warnings import NOTABLE_SHARE
from nearsim_db.similarity.text import Shingler

# Near pairs are those of the first of these similarities, by the reference, that has pairs enough.
_NEAR = (0.8, 0.7, 0.6)
_ENOUGH = 30
_RANDOM = 0.5
FEWEST_NEAR = 10
_ALIKE = 0.03  # gaps so close are the same, for other samples tell them otherwise
_ALIKE_F1 = 0.005
_WORDS_COST_LESS = 0.1  # a fifth of the shingles: characters must part the pairs so much better
_QUIET = 0.2
_SIZES = {"word": range(1, 6), "char": range(3, 10)}
_CHARACTERS_JUDGED = 1_500_000
_RANDOM_PAIRS, _NEAR_PAIRS = 12_000, 600


@dataclass(frozen=True, slots=True)
class Shingling:
    """A way to cut texts, and how it does: similarities of near pairs and of random ones, and the k rule.

    `near` is the lower quartile of near pairs, `random` what one of a thousand random pairs exceeds.
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
        """How far apart near and random pairs are."""
        return self.near - self.random

    @property
    def name(self) -> str:
        """As people say it."""
        if self.scheme == "bag":
            return "bag of words"
        unit = {"word": "word", "char": "character", "sentence": "sentence"}[self.scheme]
        return f"{self.k} {unit}{'' if self.k == 1 else 's'}"

    def apply(self, recipe: Recipe) -> Recipe:
        """The recipe with these shingles; characters leave the rules for words behind."""
        settings = [f"shingle.scheme={self.scheme}", f"shingle.k={self.k}"]
        return override(recipe, settings + _wordless(self.scheme))


def _wordless(scheme: str) -> list[str]:
    if scheme != "char":
        return []
    return ["shingle.stopwords=none", "shingle.stem=none", "shingle.min_token_length=1"]


def candidates(recipe: Recipe, kept: frozenset[str]) -> list[tuple[str, int]]:
    """The schemes and sizes to try; what of `scheme` and `k` is kept is the recipe's. Its own are among them."""
    own = (recipe.shingle.scheme, recipe.shingle.k)
    if kept == {"scheme", "k"}:
        return [own]
    schemes = [own[0]] if "scheme" in kept else list(_SIZES)
    found = [
        (scheme, k) for scheme in schemes for k in ([own[1]] if "k" in kept else _SIZES.get(scheme, [own[1]]))
    ]
    return found if own in found else [*found, own]


@dataclass(frozen=True, slots=True)
class TestPairs:
    """Texts, and which pairs of them are near and which random, as rows into the texts."""

    texts: list[str]
    near: tuple[Ints, Ints]
    random: tuple[Ints, Ints]

    @property
    def near_pairs(self) -> int:
        """How many near pairs there are to judge by."""
        return len(self.near[0])


def find_test_pairs(
    recipe: Recipe, texts: Sequence[str], unspaced: bool, seed: int, threads: int, progress: Progress
) -> TestPairs:
    """Near and random pairs by a scheme that suits any text: characters, 5 of them, 3 in scripts without spaces."""
    settings = ["shingle.scheme=char", f"shingle.k={3 if unspaced else 5}", *_wordless("char")]
    encoder = Encoder(resolve(override(recipe, settings)))
    sets = distinct_sets(encoder, texts, threads, progress)
    pairs = sample_pairs(sets, seed, random_pairs=50_000, near_pairs=300_000)
    generator = np.random.Generator(np.random.PCG64(random_words(seed, "tune test pairs", 4)))
    mean = max(float(np.mean([len(text) for text in texts])) if texts else 1.0, 1.0)
    near = _draw_near(pairs, generator, int(min(_NEAR_PAIRS, max(50, _CHARACTERS_JUDGED / 2 / mean))))
    random = _draw_random(sets, generator, int(min(500, max(60, _CHARACTERS_JUDGED / mean))))
    used, places = np.unique(np.concatenate((*near, *random)), return_inverse=True)
    first = np.full(len(sets), -1, np.int64)
    rows = np.flatnonzero(sets.set_of >= 0)[::-1]
    first[sets.set_of[rows]] = rows
    parts = np.split(places.astype(np.int64), np.cumsum([len(near[0]), len(near[1]), len(random[0])]))
    return TestPairs([texts[row] for row in first[used].tolist()], (parts[0], parts[1]), (parts[2], parts[3]))


def _draw_near(pairs: PairSample, generator: np.random.Generator, most: int) -> tuple[Ints, Ints]:
    counts = [int((pairs.similarity >= near).sum()) for near in _NEAR]
    level = next((near for near, count in zip(_NEAR, counts, strict=True) if count >= _ENOUGH), _NEAR[-1])
    near = np.flatnonzero(pairs.similarity >= level)
    if len(near) > most:
        share = pairs.weight[near] / pairs.weight[near].sum()
        near = np.sort(generator.choice(near, most, replace=False, p=share))
    return pairs.left[near], pairs.right[near]


def _draw_random(sets: DistinctSets, generator: np.random.Generator, most: int) -> tuple[Ints, Ints]:
    """Random pairs among a few documents, so that few texts must be cut; without those that are nearly the same."""
    chosen = generator.permutation(len(sets))[:most]
    if len(chosen) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    left, right = generator.integers(0, len(chosen), (2, _RANDOM_PAIRS))
    different = left != right
    left, right = chosen[left[different]], chosen[right[different]]
    random = sets.similarities(left, right) < _RANDOM
    return left[random], right[random]


def judge(
    recipe: Recipe,
    given: Sequence[tuple[str, int]],
    tests: TestPairs,
    units: dict[str, Units],
    threads: int,
    progress: Progress,
) -> Iterator[Shingling]:
    """How each way to cut does on the same pairs."""
    for done, (scheme, k) in enumerate(given, 1):
        settings = [f"shingle.scheme={scheme}", f"shingle.k={k}", *_wordless(scheme)]
        encoder = Encoder(resolve(override(recipe, settings)))
        sets = distinct_sets(encoder, tests.texts, threads)
        near, random = similarities(sets, *tests.near), similarities(sets, *tests.random)
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
        progress("judge", done, len(given))


def similarities(sets: DistinctSets, left: Ints, right: Ints) -> Floats:
    """The similarities of pairs of documents; 0 where one has no features."""
    ends = sets.set_of[left], sets.set_of[right]
    found = np.zeros(len(left))
    some = (ends[0] >= 0) & (ends[1] >= 0)
    found[some] = sets.similarities(ends[0][some], ends[1][some])
    return found


def unit_of(scheme: str) -> str:
    """What the shingles of a scheme are made of."""
    return {"char": "char", "sentence": "sentence"}.get(scheme, "word")


def units(recipe: Recipe, unit: str, texts: Sequence[str], backend: str | None = None) -> Units:
    """The units ("char", "word" or "sentence") of some texts, as the recipe makes them."""
    rules = ["shingle.scheme=bag" if unit == "word" else f"shingle.scheme={unit}", "shingle.k=1"]
    encoder = Encoder(resolve(override(recipe, rules + _wordless(unit))), backend)
    shingles = Shingler(encoder.profile.recipe, encoder.backend).shingles(texts)
    return units_of(shingles.ids, shingles.offsets)


def choose(
    judged: Sequence[Shingling], near_pairs: int, unspaced: float, own: tuple[str, int]
) -> tuple[Shingling, str]:
    """The best of the ways to cut, and why."""
    if len(judged) == 1:
        return judged[0], "as it was given"
    if judged[0].best_f1 is not None:
        most = max(one.best_f1 or 0.0 for one in judged)
        best = _widest([one for one in judged if (one.best_f1 or 0.0) >= most - _ALIKE_F1], own)
        return best, f"the labelled pairs are told apart best, with an F1 of {best.best_f1:.3f}"
    verdicts: tuple[Verdict, ...] = ("ok", "warning", "problem")
    # Single words are shown for comparison: they know nothing of the order of words.
    longer = [one for one in judged if (one.scheme, one.k) not in (("word", 1), ("char", 1))] or judged
    sound = next(found for v in verdicts if (found := [one for one in longer if one.rule.verdict == v]))
    words = [one for one in sound if one.scheme == "word" and one.short < NOTABLE_SHARE]
    if unspaced >= NOTABLE_SHARE:
        words = []
    characters = [one for one in sound if one.scheme == "char"]
    if near_pairs < FEWEST_NEAR:
        return _without_near_pairs(words or characters or sound, own)
    others = [one for one in sound if one.scheme not in ("word", "char")]
    found = [_widest(group, own) for group in (words, characters) if group]
    found = found or [_widest(others or sound, own)]
    best = found[0]
    if len(found) == 2 and found[1].gap > found[0].gap + _WORDS_COST_LESS:
        best = found[1]
    return best, _reason(best, found, bool(words), unspaced)


def _widest(group: Sequence[Shingling], own: tuple[str, int]) -> Shingling:
    """Among those as wide as the widest the recipe's own, if it is one of them, else the shortest."""
    most = max(one.gap for one in group)
    widest = [one for one in group if one.gap >= most - _ALIKE]
    return min(widest, key=lambda one: ((one.scheme, one.k) != own, one.k))


def _without_near_pairs(group: Sequence[Shingling], own: tuple[str, int]) -> tuple[Shingling, str]:
    kept = [one for one in group if (one.scheme, one.k) == own]
    quiet = [one for one in group if one.random <= _QUIET and one.rule.verdict == "ok"]
    best = (kept or sorted(quiet or group, key=lambda one: one.k if quiet else one.random))[0]
    why = "the recipe's own" if kept else "the shortest that random pairs hardly share"
    return best, f"{why}; there are too few near pairs to judge by"


def _reason(best: Shingling, found: Sequence[Shingling], words: bool, unspaced: float) -> str:
    parted = f"near pairs from {best.near:.2f}, random ones up to {best.random:.2f}"
    if best.scheme == "char" and not words:
        why = "the script has no spaces" if unspaced >= NOTABLE_SHARE else "the texts are too short for words"
        return f"{parted}; {why}"
    if best.scheme == "word" and len(found) == 2:
        other = found[1]
        return f"{parted}; {other.name} part them by {other.gap:.2f} for {best.gap:.2f}, with more shingles"
    return parted


def with_f1(one: Shingling, f1: float) -> Shingling:
    """The same with what labelled pairs say of it."""
    return replace(one, best_f1=f1)


def texts_looked_at(texts: Sequence[str], seed: int) -> list[str]:
    """A few of the texts, for counting characters and words."""
    generator = np.random.Generator(np.random.PCG64(random_words(seed, "tune units", 4)))
    chosen: NDArray[np.int64] = generator.permutation(len(texts))[:2_000]
    found: list[str] = []
    size = 0
    for row in chosen.tolist():
        found.append(texts[row])
        size += len(texts[row])
        if size > _CHARACTERS_JUDGED:
            break
    return found
