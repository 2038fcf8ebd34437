"""How many pairs of a corpus have which similarity, and where near ones part from random ones."""

import math
from dataclasses import dataclass

import numpy as np

from nearsim_db.tune.distinct import Floats
from nearsim_db.tune.pair_sample import PairSample

BINS = 20
_WINDOW = 3
_RISE = 1.25
_SIGMAS = 2.0


@dataclass(frozen=True, slots=True)
class Histogram:
    """Estimated pairs of different texts in the corpus: bin i holds similarities from i / 20 up to (i + 1) / 20.

    `pairs` is float64 of 20; the last bin holds similarity 1 of different texts too, of which there is none where
    features are sets. `identical` are pairs of documents with the same features, `scale` how many pairs of the corpus
    stand behind one of the sample.
    """

    pairs: Floats
    identical: float
    scale: float


def histogram(pairs: PairSample, twin_pairs: int, scale: float) -> Histogram:
    """The histogram of a weighted sample of pairs."""
    places = np.minimum((pairs.similarity * BINS + 1e-9).astype(np.int64), BINS - 1)
    counts = np.bincount(places, pairs.weight, minlength=BINS).astype(np.float64)
    return Histogram(counts * scale, twin_pairs * scale, scale)


def valley(histogram: Histogram) -> float | None:
    """The middle of the emptiest stretch of three bins beyond which pairs grow more again; None if they never do.

    The growth must be of a quarter and of two standard deviations of counts that are Poisson's in the sample.
    """
    counts = histogram.pairs / histogram.scale
    # Random pairs have a peak of their own, which is not at 0 where all documents share some shingles.
    crowded = int(np.argmax(counts[: BINS // 2]))
    windows = np.convolve(counts[crowded:], np.ones(_WINDOW), "valid")
    lowest = int(np.argmin(windows[:-_WINDOW]))
    # The last of several that are equally empty is the middle of them where they lie side by side.
    equal = np.flatnonzero(windows[:-_WINDOW] == windows[lowest])
    run = equal[equal - equal[0] == np.arange(len(equal))]
    lowest = int(run[len(run) // 2])
    highest = float(windows[lowest + _WINDOW :].max())
    rise = highest - float(windows[lowest])
    if highest < _RISE * windows[lowest] or rise <= _SIGMAS * math.sqrt(highest + windows[lowest]):
        return None
    return (crowded + lowest + _WINDOW / 2) / BINS
