"""Scores of shinglings: how well they separate near pairs from random pairs."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.tuning.distinct_sets import DistinctSets, Floats, Ints, distinct_sets
from nearsim_db.analysis.tuning.reference_pairs import CHARACTERS_SCORED, ReferencePairs
from nearsim_db.analysis.tuning.shingling import Shingling, unit_of, wordless_settings
from nearsim_db.records import Progress
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.k_rule import KRule, Units
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override


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
        settings = [f"shingle.scheme={scheme}", f"shingle.k={k}", *wordless_settings(scheme)]
        encoder = Encoder(resolve(override(recipe, settings)))
        sets = distinct_sets(encoder, pairs.texts, threads)
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
