"""Histogram of pairs by similarity, and the valley between near and random pairs."""

import math
from dataclasses import dataclass

import numpy as np

from nearsim_db.analysis.tuning.distinct_sets import Floats
from nearsim_db.analysis.tuning.pair_sample import PairSample

BINS = 20
_WINDOW = 3
_RISE = 1.25
_SIGMAS = 2.0


@dataclass(frozen=True, slots=True)
class Histogram:
    """Estimated pairs of different texts in the corpus: bin i covers similarities from i / 20 up to (i + 1) / 20.

    `pairs` is float64 of 20, `sampled` the same for the sample alone; `identical` are pairs of documents of the corpus
    with the same features.
    """

    pairs: Floats
    sampled: Floats
    identical: float


def histogram(pairs: PairSample, weight: Floats, identical: float) -> Histogram:
    """Return the histogram of a sample of pairs; each represents `weight` pairs of the corpus, float64 of m."""
    places = np.minimum((pairs.similarity * BINS + 1e-9).astype(np.int64), BINS - 1)
    for_all = np.bincount(places, weight, minlength=BINS).astype(np.float64)
    sampled = np.bincount(places, pairs.weight, minlength=BINS).astype(np.float64)
    return Histogram(for_all, sampled, identical)


def valley(histogram: Histogram) -> float | None:
    """Return the middle of the emptiest three bins before the counts rise again, None if they never do.

    The rise must be at least a quarter, and two standard deviations of Poisson counts in the sample.
    """
    counts = histogram.sampled
    # Random pairs peak above 0 if all documents share some shingles.
    crowded = int(np.argmax(counts[: BINS // 2]))
    windows = np.convolve(counts[crowded:], np.ones(_WINDOW), "valid")
    lowest = int(np.argmin(windows[:-_WINDOW]))
    # Of adjacent windows that are equally empty, take the middle one.
    equal = np.flatnonzero(windows[:-_WINDOW] == windows[lowest])
    run = equal[equal - equal[0] == np.arange(len(equal))]
    lowest = int(run[len(run) // 2])
    highest = float(windows[lowest + _WINDOW :].max())
    rise = highest - float(windows[lowest])
    if highest < _RISE * windows[lowest] or rise <= _SIGMAS * math.sqrt(highest + windows[lowest]):
        return None
    return (crowded + lowest + _WINDOW / 2) / BINS
