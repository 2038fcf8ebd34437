"""A sample of near and random pairs, weighted to represent all pairs of the sets.

A pair enters the sample in two ways: at random, with the same probability q for all, and by sharing a bucket of a
generous banding of MinHash sketches, with the probability p(s) of the S-curve at its similarity s, times c if its
buckets were too large to take all their pairs. [drawn] a / q + [met] (1 - a) / (p(s) c) has the expectation 1 for every
pair, for any a that depends on s alone (Horvitz and Thompson 1952), so weighted sums over the sample are unbiased. a
weighs the two ways by their variances. A shingle that many documents share, and that is their minimum, puts them all in
one bucket, so pairs are not independent: the variance of the second way is multiplied by a factor for such crowding.
"""

import math
from dataclasses import dataclass

import numpy as np

from nearsim_db.analysis.tuning.distinct_sets import DistinctSets, distinct
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, are_fresh, flat
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.sketch import Banding, MinHash

_K = 128
_RANDOM_PAIRS = 300_000
_NEAR_PAIRS = 1_000_000
_MERGED_IDS = 600_000_000  # about one second of comparisons
_COMPARED_AT_ONCE = 100_000
_CROWDING = 100.0


@dataclass(frozen=True, slots=True)
class PairSample:
    """m distinct pairs of sets, left < right, with similarity in [0, 1] and the number of pairs each represents.

    `total` is the number of all pairs of the sets.
    """

    left: Ints
    right: Ints
    similarity: Floats
    weight: Floats
    total: int


def sample_pairs(
    sets: DistinctSets, seed: int, random_pairs: int = _RANDOM_PAIRS, near_pairs: int = _NEAR_PAIRS
) -> PairSample:
    """Sample pairs at random and by shared buckets; if there are few, return all of them.

    `random_pairs` and `near_pairs` bound the work, less for long documents.
    """
    size = len(sets)
    total = size * (size - 1) // 2
    affordable = int(_MERGED_IDS / max(2.0 * float(sets.sizes.mean()) if size else 1.0, 1.0))
    lots, most = min(random_pairs, affordable), min(near_pairs, affordable)
    if total <= lots:
        left, right = np.triu_indices(size, 1)
        found = sets.similarities(left.astype(np.int64), right.astype(np.int64))
        return PairSample(left, right, found, np.ones(total), total)
    generator = np.random.Generator(np.random.PCG64(random_words(seed, "tune pairs", 4)))
    codes = _draw(generator, size, lots)
    by_lot = _RandomPairs(codes, sets.similarities(*np.divmod(codes, size)), _drawn_at_all(total, lots))
    rows = _rows(by_lot, most)
    met, kept = _meet(sets, generator, rows, most, seed)
    return _weigh(by_lot, met, kept, rows, sets, total)


@dataclass(frozen=True, slots=True)
class _RandomPairs:
    """Pairs drawn at random, each with the same probability; a code is left * number of sets + right."""

    codes: Ints
    similarity: Floats
    probability: float


def shares_bucket(similarity: Floats, rows: int) -> Floats:
    """Return the probability that a pair shares a bucket of the generous banding with `rows` rows."""
    return np.asarray(1 - (1 - similarity**rows) ** (_K // rows), np.float64)


def _draw(generator: np.random.Generator, size: int, lots: int) -> Ints:
    """Draw distinct pairs and return their codes left * size + right, ascending."""
    left = generator.integers(0, size, lots)
    right = generator.integers(0, size - 1, lots)
    right += right >= left
    return distinct(np.minimum(left, right) * size + np.maximum(left, right))


def _drawn_at_all(total: int, lots: int) -> float:
    """Return the probability that one of `total` items is among `lots` draws with replacement."""
    return float(-np.expm1(lots * np.log1p(-1 / total)))


def _rows(lots: _RandomPairs, most: int) -> int:
    """Return the fewest rows per band with which at most `most` pairs are expected to share a bucket."""
    for rows in range(2, 17):
        if shares_bucket(lots.similarity, rows).sum() / lots.probability <= most:
            return rows
    return 16


def _meet(
    sets: DistinctSets, generator: np.random.Generator, rows: int, most: int, seed: int
) -> tuple[Ints, Floats]:
    """Return the codes of the pairs that share a bucket, and the probability that each was kept."""
    family = MinHash(_K, seed, sets.bits, backend=sets.backend)
    keys = flat(family.band_keys(family.sketch(sets.ids, sets.offsets), Banding(_K // rows, rows, seed=seed)))
    keys = keys.reshape(-1, _K // rows)
    members, begins, sizes = _buckets(keys)
    pairs = sizes * (sizes - 1) // 2
    cap = _cap(pairs, most)
    small, large = pairs <= cap, pairs > cap
    codes = [_all_pairs(members, begins[small], sizes[small], len(sets))]
    chance = np.ones(keys.shape) if large.any() else None
    for begin, count in zip(begins[large].tolist(), sizes[large].tolist(), strict=True):
        own = members[begin : begin + count]
        left, right = np.divmod(_draw(generator, count, cap), count)
        ends = np.sort(np.stack((own[left] // keys.shape[1], own[right] // keys.shape[1])), axis=0)
        codes.append(ends[0] * len(sets) + ends[1])
        assert chance is not None
        chance.flat[own] = _drawn_at_all(count * (count - 1) // 2, cap)
    met = distinct(np.concatenate(codes))
    return met, np.ones(len(met)) if chance is None else _kept(keys, chance, met)


def _buckets(keys: Hashes) -> tuple[Ints, Ints, Ints]:
    """Return buckets of at least two: members as indexes into flattened `keys`, and start and size of each bucket."""
    flat = keys.ravel()
    members = np.argsort(flat, kind="stable")
    begins = np.flatnonzero(are_fresh(flat[members]))
    sizes = np.diff(begins, append=len(flat))
    shared = sizes > 1
    return members, begins[shared], sizes[shared]


def _cap(pairs: Ints, most: int) -> int:
    """Return the limit of pairs per bucket that bounds their total by `most`; at least 1."""
    ordered = np.sort(pairs)
    before = np.cumsum(ordered) - ordered
    share = (most - before) // (len(ordered) - np.arange(len(ordered)))
    too_large = np.flatnonzero(share < ordered)
    if len(too_large):
        return max(1, int(share[too_large[0]]))
    return int(ordered[-1]) if len(ordered) else 1


def _all_pairs(members: Ints, begins: Ints, sizes: Ints, documents: int) -> Ints:
    """Return the codes of all pairs of the buckets."""
    bands = len(members) // documents
    places = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    firsts = np.repeat(begins, sizes)
    nth = np.arange(int(places.sum())) - np.repeat(np.cumsum(places) - places, places)
    left = members[np.repeat(firsts, places) + nth] // bands
    right = members[np.repeat(firsts + places, places)] // bands
    return np.asarray(np.minimum(left, right) * documents + np.maximum(left, right), np.int64)


def _kept(keys: Hashes, chance: Floats, met: Ints) -> Floats:
    """Return 1 - the product of 1 - c over the buckets that a pair shares."""
    kept = np.empty(len(met))
    with np.errstate(divide="ignore"):
        missing = np.log1p(-chance)
    for begin in range(0, len(met), _COMPARED_AT_ONCE):
        left, right = np.divmod(met[begin : begin + _COMPARED_AT_ONCE], len(keys))
        shared = keys[left] == keys[right]
        kept[begin : begin + len(left)] = -np.expm1(np.where(shared, missing[left], 0.0).sum(axis=1))
    return kept


def _weigh(
    lots: _RandomPairs, met: Ints, kept: Floats, rows: int, sets: DistinctSets, total: int
) -> PairSample:
    new = np.setdiff1d(met, lots.codes, assume_unique=True)
    codes = np.concatenate((lots.codes, new))
    similarity = np.concatenate((lots.similarity, sets.similarities(*np.divmod(new, len(sets)))))
    order = np.argsort(codes)
    codes, similarity = codes[order], similarity[order]
    near = shares_bucket(similarity, rows)
    by_lot = _weight_of_lots(lots.probability, near)
    weight = np.zeros(len(codes))
    places = np.searchsorted(codes, lots.codes)
    weight[places] = by_lot[places] / lots.probability
    places = np.searchsorted(codes, met)
    # Truncated ids can put sets that share nothing in one bucket: near is then 0, and the random weight dominates.
    weight[places] += (1 - by_lot[places]) / (np.maximum(near[places], 1e-12) * kept)
    left, right = np.divmod(codes, len(sets))
    return PairSample(left, right, similarity, weight, total)


def _weight_of_lots(lot: float, near: Floats) -> Floats:
    """Weigh each way by the variance of the other: (1 - q) / q, and (1 - p) / p times the crowding."""
    by_lot = (1 - lot) / lot
    by_meeting = _CROWDING * (1 - near) / np.maximum(near, 1e-12)
    return np.asarray(by_meeting / (by_lot + by_meeting), np.float64)


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
