"""Near and random pairs of a sample, and the scores of shinglings on them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.tuning.distinct_sets import DistinctSets, Floats, Ints, distinct_sets
from nearsim_db.analysis.tuning.pair_sample import PairSample, sample_pairs
from nearsim_db.analysis.tuning.shingling import Shingling, unit_of, with_shingles
from nearsim_db.records import Progress
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.k_rule import KRule, Units
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe

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
    chosen: NDArray[np.int64] = generator.permutation(len(texts))[:2_000]
    found: list[str] = []
    size = 0
    for row in chosen.tolist():
        found.append(texts[row])
        size += len(texts[row])
        if size > CHARACTERS_SCORED:
            break
    return found
