"""Pair samples: near and random pairs of sets, weighted to represent all pairs.

A pair can enter the sample in two ways. The first is at random, with a probability q that is the same for all pairs.
The second is by sharing a bucket of a generous banding of MinHash sketches. Its probability is p(s), the S-curve at the
pair's similarity s, times c, the probability that the pair is kept although its buckets are too large to take all their
pairs. The weight of a pair is [drawn] a / q + [shared] (1 - a) / (p(s) c). Its expectation is 1 for every pair and for
any a that depends on s alone (Horvitz and Thompson 1952), so weighted sums are unbiased.

The factor a weighs the two ways by their variances. Pairs that share a bucket are not independent: a shingle that many
documents have can be the minimum of all of them, which puts them into the same bucket. The variance of the second way
is therefore multiplied by a factor for such crowding.

If features have weights, the second way takes all pairs that share one of the rarest features of both sets, each with
weight 1. All other pairs are represented by pairs drawn at random.
"""

import math
from dataclasses import dataclass

import numpy as np

from nearsim_db.analysis.tuning.distinct_sets import DistinctSets, distinct
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, are_fresh, flat
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.sketch import Banding, MinHash

_SKETCH_SIZE = 128
_MAX_RANDOM_PAIRS = 300_000
_MAX_NEAR_PAIRS = 1_000_000
# Comparing this number of ids takes about one second.
_MAX_MERGED_IDS = 600_000_000
_MAX_BAND_ROWS = 16
_COMPARED_AT_ONCE = 100_000
_CROWDING = 100.0
# The number of ids in a sketch of the preset record-linkage.
_RARE_FEATURES = 16


@dataclass(frozen=True, slots=True)
class WeightedPairs:
    """A sample of m distinct pairs of sets."""

    left: Ints  # number of the left set, int64 of m
    right: Ints  # number of the right set, greater than `left`, int64 of m
    similarity: Floats  # in [0, 1], float64 of m
    weight: Floats  # number of pairs that each pair represents, float64 of m
    total: int  # number of all pairs of the sets


def sample_pairs(
    sets: DistinctSets,
    seed: int,
    max_random_pairs: int = _MAX_RANDOM_PAIRS,
    max_near_pairs: int = _MAX_NEAR_PAIRS,
) -> WeightedPairs:
    """Sample pairs at random and by shared buckets. If there are few enough pairs, return all of them.

    `max_random_pairs` and `max_near_pairs` limit the work; both are lowered for long documents.
    """
    size = len(sets)
    total = size * (size - 1) // 2
    affordable = int(_MAX_MERGED_IDS / max(2.0 * float(sets.sizes.mean()) if size else 1.0, 1.0))
    draws, max_near_pairs = min(max_random_pairs, affordable), min(max_near_pairs, affordable)
    if total <= draws:
        left, right = (side.astype(np.int64) for side in np.triu_indices(size, 1))
        similarity = sets.similarities(left, right)
        return WeightedPairs(left, right, similarity, np.ones(total), total)

    generator = np.random.Generator(np.random.PCG64(random_words(seed, "tune pairs", 4)))
    codes = _draw(generator, size, draws)
    if sets.weights is not None:
        return _weighted_pairs(sets, codes, _probability_of_draw(total, draws), max_near_pairs, total)
    similarity = sets.similarities(*np.divmod(codes, size))
    at_random = _RandomPairs(codes, similarity, _probability_of_draw(total, draws))

    rows = _choose_rows(at_random, max_near_pairs)
    shared, kept = _sharing_pairs(sets, generator, rows, max_near_pairs, seed)
    return _weigh(at_random, shared, kept, rows, sets, total)


@dataclass(frozen=True, slots=True)
class _RandomPairs:
    """Pairs that were drawn at random."""

    codes: Ints  # left * number of sets + right
    similarity: Floats
    probability: float  # with which each of all pairs is drawn


def shares_bucket(similarity: Floats, rows: int) -> Floats:
    """Return the probability that a pair shares a bucket of the generous banding with `rows` rows."""
    return np.asarray(1 - (1 - similarity**rows) ** (_SKETCH_SIZE // rows), np.float64)


def _draw(generator: np.random.Generator, size: int, draws: int) -> Ints:
    """Draw pairs with replacement, and return their distinct codes left * size + right in ascending order."""
    left = generator.integers(0, size, draws)
    right = generator.integers(0, size - 1, draws)
    # Skip the number of the left set, because a set is not paired with itself.
    right += right >= left
    return distinct(np.minimum(left, right) * size + np.maximum(left, right))


def _probability_of_draw(total: int, draws: int) -> float:
    """Return the probability that a certain one of `total` items is drawn at least once, in draws with replacement."""
    return float(-np.expm1(draws * np.log1p(-1 / total)))


def _choose_rows(at_random: _RandomPairs, max_pairs: int) -> int:
    """Return the smallest number of rows per band for which at most `max_pairs` are expected to share a bucket."""
    for rows in range(2, _MAX_BAND_ROWS):
        if shares_bucket(at_random.similarity, rows).sum() / at_random.probability <= max_pairs:
            return rows
    return _MAX_BAND_ROWS


def _sharing_pairs(
    sets: DistinctSets, generator: np.random.Generator, rows: int, max_pairs: int, seed: int
) -> tuple[Ints, Floats]:
    """Return the codes of the pairs that share a bucket, and the probability that each was kept."""
    family, bands = MinHash(_SKETCH_SIZE, seed, sets.bits, backend=sets.backend), _SKETCH_SIZE // rows
    keys = flat(family.band_keys(family.sketch(sets.ids, sets.offsets), Banding(bands, rows, seed=seed)))
    keys = keys.reshape(-1, bands)
    members, begins, sizes = _buckets(keys)

    pairs = sizes * (sizes - 1) // 2
    limit = _pairs_per_bucket(pairs, max_pairs)
    is_small, is_large = pairs <= limit, pairs > limit
    codes = [_all_pairs(members, begins[is_small], sizes[is_small], len(sets), bands)]

    # From a large bucket, only some pairs are drawn.
    probability = np.ones(keys.shape) if is_large.any() else None
    for begin, count in zip(begins[is_large].tolist(), sizes[is_large].tolist(), strict=True):
        bucket = members[begin : begin + count]
        left, right = np.divmod(_draw(generator, count, limit), count)
        # The place of a member in the flat keys, divided by the number of bands, is its set.
        ends = np.sort(np.stack((bucket[left] // keys.shape[1], bucket[right] // keys.shape[1])), axis=0)
        codes.append(ends[0] * len(sets) + ends[1])
        assert probability is not None
        probability.flat[bucket] = _probability_of_draw(count * (count - 1) // 2, limit)

    shared = distinct(np.concatenate(codes))
    return shared, np.ones(len(shared)) if probability is None else _kept(keys, probability, shared)


def _buckets(keys: Hashes) -> tuple[Ints, Ints, Ints]:
    """Return the buckets with at least two members.

    The members are indexes into the flattened `keys`. The other two arrays are the start and the size of each bucket.
    """
    hashes = keys.ravel()
    members = np.argsort(hashes, kind="stable")
    begins = np.flatnonzero(are_fresh(hashes[members]))
    sizes = np.diff(begins, append=len(hashes))
    is_shared = sizes > 1
    return members, begins[is_shared], sizes[is_shared]


def _pairs_per_bucket(pairs: Ints, max_pairs: int) -> int:
    """Return the limit of pairs per bucket, at least 1, that limits the pairs of all buckets to `max_pairs`."""
    ordered = np.sort(pairs)
    before = np.cumsum(ordered) - ordered
    share = (max_pairs - before) // (len(ordered) - np.arange(len(ordered)))
    too_large = np.flatnonzero(share < ordered)
    if len(too_large):
        return max(1, int(share[too_large[0]]))
    return int(ordered[-1]) if len(ordered) else 1


def _all_pairs(members: Ints, begins: Ints, sizes: Ints, documents: int, bands: int) -> Ints:
    """Return the codes of all pairs of the buckets. A member divided by `bands` is the number of a set."""
    # Each member is paired with the members before it in the bucket.
    places = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    firsts = np.repeat(begins, sizes)
    nth = np.arange(int(places.sum())) - np.repeat(np.cumsum(places) - places, places)
    left = members[np.repeat(firsts, places) + nth] // bands
    right = members[np.repeat(firsts + places, places)] // bands
    return np.asarray(np.minimum(left, right) * documents + np.maximum(left, right), np.int64)


def _kept(keys: Hashes, probability: Floats, shared: Ints) -> Floats:
    """Return the probability that each pair was kept in at least one of the buckets that it shares.

    It is 1 minus the product of 1 - c over these buckets, where c is the probability that the bucket kept the pair.
    """
    kept = np.empty(len(shared))
    # A bucket that kept all its pairs has c = 1, and the logarithm of 0 is -inf.
    with np.errstate(divide="ignore"):
        missing = np.log1p(-probability)
    for begin in range(0, len(shared), _COMPARED_AT_ONCE):
        left, right = np.divmod(shared[begin : begin + _COMPARED_AT_ONCE], len(keys))
        is_equal = keys[left] == keys[right]
        kept[begin : begin + len(left)] = -np.expm1(np.where(is_equal, missing[left], 0.0).sum(axis=1))
    return kept


def _weigh(
    at_random: _RandomPairs, shared: Ints, kept: Floats, rows: int, sets: DistinctSets, total: int
) -> WeightedPairs:
    """Join the pairs drawn at random with the pairs that share a bucket, and compute the weights."""
    further = np.setdiff1d(shared, at_random.codes, assume_unique=True)
    codes = np.concatenate((at_random.codes, further))
    similarity = np.concatenate((at_random.similarity, sets.similarities(*np.divmod(further, len(sets)))))
    order = np.argsort(codes)
    codes, similarity = codes[order], similarity[order]

    near = shares_bucket(similarity, rows)
    share_at_random = _share_at_random(at_random.probability, near)
    weight = np.zeros(len(codes))
    places = np.searchsorted(codes, at_random.codes)
    weight[places] = share_at_random[places] / at_random.probability
    places = np.searchsorted(codes, shared)
    # Because ids are truncated, sets without a common feature can share a bucket. Then near is 0, and the weight of
    # the first way dominates.
    weight[places] += (1 - share_at_random[places]) / (np.maximum(near[places], 1e-12) * kept)

    left, right = np.divmod(codes, len(sets))
    return WeightedPairs(left, right, similarity, weight, total)


def _weighted_pairs(
    sets: DistinctSets, at_random: Ints, probability: float, max_near_pairs: int, total: int
) -> WeightedPairs:
    """Return the pairs that share a rare feature, and the pairs with the codes `at_random` that share none."""
    shared = _sharing_rare_features(sets, max_near_pairs)
    sharing_none = np.setdiff1d(at_random, shared, assume_unique=True)
    codes = np.concatenate((shared, sharing_none))
    weight = np.repeat([1.0, 1 / probability], [len(shared), len(sharing_none)])
    left, right = np.divmod(codes, len(sets))
    return WeightedPairs(left, right, sets.similarities(left, right), weight, total)


def _sharing_rare_features(sets: DistinctSets, max_pairs: int) -> Ints:
    """Return the codes of the pairs that share a feature which is among the rarest of both sets, in ascending order."""
    owners = np.repeat(np.arange(len(sets)), sets.sizes)
    _, features, frequency = np.unique(sets.ids, return_inverse=True, return_counts=True)
    counts = frequency[features]
    order = np.lexsort((features, counts, owners))
    rank = np.arange(len(order)) - sets.offsets[:-1][owners]
    chosen = order[(rank < _RARE_FEATURES) & (counts[order] > 1)]

    # Take features from the rarest on, until their pairs would be more than `max_pairs`.
    chosen = chosen[np.lexsort((features[chosen], counts[chosen]))]
    begins = np.flatnonzero(are_fresh(features[chosen]))
    sizes = np.diff(begins, append=len(chosen))
    fits = np.cumsum(sizes * (sizes - 1) // 2) <= max_pairs
    codes = _all_pairs(owners[chosen], begins[fits], sizes[fits], len(sets), 1)
    return distinct(codes)


def _share_at_random(probability: float, near: Floats) -> Floats:
    """Return the factor a of the formula above: the variance of the second way divided by the sum of both variances.

    The variances are (1 - q) / q for random pairs, and (1 - p) / p times the crowding for pairs sharing a bucket.
    """
    random_variance = (1 - probability) / probability
    near_variance = _CROWDING * (1 - near) / np.maximum(near, 1e-12)
    return np.asarray(near_variance / (random_variance + near_variance), np.float64)


BINS = 20
_WINDOW_BINS = 3
_MIN_RISE = 1.25
_MIN_DEVIATIONS = 2.0


@dataclass(frozen=True, slots=True)
class Histogram:
    """Estimated numbers of pairs of different texts, in 20 bins. Bin i has similarities from i / 20 to (i + 1) / 20."""

    pairs: Floats  # pairs of the corpus, float64 of 20
    sampled: Floats  # pairs of the sample, float64 of 20
    identical: float  # pairs of documents of the corpus that have the same features


def histogram(pairs: WeightedPairs, weight: Floats, identical: float) -> Histogram:
    """Return the histogram of a sample of m pairs. Pair i represents `weight[i]` pairs of the corpus."""
    places = np.minimum((pairs.similarity * BINS + 1e-9).astype(np.int64), BINS - 1)
    in_corpus = np.bincount(places, weight, minlength=BINS).astype(np.float64)
    sampled = np.bincount(places, pairs.weight, minlength=BINS).astype(np.float64)
    return Histogram(in_corpus, sampled, identical)


def valley(histogram: Histogram) -> float | None:
    """Return the similarity in the middle of the emptiest three adjacent bins before the counts rise again.

    Returns None unless the counts rise by at least a quarter, and by more than two standard deviations of Poisson
    counts in the sample.
    """
    counts = histogram.sampled
    # If all documents share some shingles, the peak of random pairs is above 0.
    peak = int(np.argmax(counts[: BINS // 2]))
    windows = np.convolve(counts[peak:], np.ones(_WINDOW_BINS), "valid")
    lowest = int(np.argmin(windows[:-_WINDOW_BINS]))

    # If adjacent windows are equally empty, take the middle window.
    equal = np.flatnonzero(windows[:-_WINDOW_BINS] == windows[lowest])
    run = equal[equal - equal[0] == np.arange(len(equal))]
    lowest = int(run[len(run) // 2])

    highest = float(windows[lowest + _WINDOW_BINS :].max())
    rise = highest - float(windows[lowest])
    if highest < _MIN_RISE * windows[lowest] or rise <= _MIN_DEVIATIONS * math.sqrt(
        highest + windows[lowest]
    ):
        return None
    return (peak + lowest + _WINDOW_BINS / 2) / BINS
