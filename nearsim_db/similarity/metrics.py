"""Metrics: the exact similarity of two documents, which sketches estimate.

Whether a Jaccard similarity or a containment reaches a threshold is decided on integers, so 7 of 10 reaches 0.7, even
though 0.7 has no exact binary representation. Other similarities are compared to 12 decimals.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from nearsim_db.similarity import backend as backends
from nearsim_db.similarity.arrays import FeatureSets, Floats, Hashes, Ints, Mask, Ragged, offsets_of
from nearsim_db.similarity.backend import sketch_kernels, text_kernels
from nearsim_db.similarity.batches import ColumnBatch
from nearsim_db.similarity.sketch.kernels import Sums
from nearsim_db.similarity.sketch.kernels.plain import add_up

Threshold = Fraction | str | float

DECIMALS = 12
_MAX_INT64 = 2**63 - 1

# A weighted feature. The features of a document are sorted by id, ids are distinct, and no weight is 0.
FEATURE = np.dtype([("id", "<u8"), ("weight", "<f8")])


@dataclass(frozen=True, slots=True)
class Scores(ColumnBatch):
    """The similarities of m pairs. A field has length m, or is None if it does not apply to the metric."""

    similarity: Floats  # at most 1
    intersection: Ints | None = None  # features that both documents have, if the metric counts features
    union: Ints | None = None  # features that either document has, if the metric counts features
    distance: Floats | None = None  # only if the metric measures distances
    smaller: Ints | None = None  # features of the smaller document, only for containment
    # Which pairs are below the threshold, but share a run that makes them a pair; None without match.passage_words.
    by_passage: Mask | None = None
    # The words in the longest run that both documents have; only for containment, and on request.
    longest_passage: Ints | None = None


class Metric(ABC):
    """An exact measure of the similarity of two documents, computed from their features."""

    name: ClassVar[str]
    """The name that sketch families use: jaccard, containment, weighted_jaccard, cosine, euclidean."""
    weighted: ClassVar[bool] = True
    """Whether features are arrays of `FEATURE`. Otherwise they are uint64 ids."""
    signed: ClassVar[bool] = False
    """Whether weights may be negative. If not, a document with a negative weight has no features."""

    @abstractmethod
    def compare(self, features: FeatureSets, left: Ints, right: Ints, backend: str | None) -> Scores:
        """Score m pairs of documents. `left` and `right` are int64 indexes into `features`.

        The scores of a pair are bit-identical, whatever other pairs the batch has.
        """

    def may_reach(
        self, features: FeatureSets, left: Ints, right: Ints, threshold: float, backend: str | None
    ) -> Mask:
        """Return which of m pairs may reach a threshold: bool of m. Excluded pairs are certainly below it."""
        return np.ones(len(left), np.bool_)

    def reaches(self, scores: Scores, threshold: float) -> Mask:
        """Return which scores reach a recipe's threshold: bool of m."""
        return _reach_rounded(scores.similarity, threshold)

    def similarity_at_threshold(self, threshold: float) -> float:
        """Return the similarity of a pair exactly at a recipe's threshold, which is a distance for some metrics."""
        return threshold


class Jaccard(Metric):
    """|A ∩ B| / |A ∪ B| of two sets of ids."""

    name = "jaccard"
    weighted = False

    def compare(self, features: FeatureSets, left: Ints, right: Ints, backend: str | None) -> Scores:
        """Count intersections and unions, and divide them; see `Metric.compare`."""
        intersection, union = count_overlaps(features, left, right, backend)
        return Scores(intersection / union, intersection, union)

    def reaches(self, scores: Scores, threshold: float) -> Mask:
        """Decide by the counts; see `Metric.reaches`."""
        assert scores.intersection is not None and scores.union is not None
        return reach_mask(scores.intersection, scores.union, threshold)


class Containment(Metric):
    """|A ∩ B| / min(|A|, |B|) of two sets of ids: the fraction of the smaller set that is in the larger set.

    Features are the ids in the order of the text, with repetitions.
    """

    name = "containment"
    weighted = False

    def compare(self, features: FeatureSets, left: Ints, right: Ints, backend: str | None) -> Scores:
        """Count intersections, and divide them by the smaller sizes; see `Metric.compare`."""
        sequences = Ragged.of(features)
        ids, offsets, _ = text_kernels(backends.resolve(backend)).distinct(
            sequences.values, sequences.offsets
        )
        intersection, sizes = intersections(ids, offsets, left, right, backend), np.diff(offsets)
        smaller, union = np.minimum(sizes[left], sizes[right]), sizes[left] + sizes[right] - intersection
        return Scores(intersection / smaller, intersection, union, smaller=smaller)

    def may_reach(
        self, features: FeatureSets, left: Ints, right: Ints, threshold: float, backend: str | None
    ) -> Mask:
        """Compare bitmaps of the ids: an id whose bit is not set in the other document's bitmap is not shared."""
        sequences = Ragged.of(features)
        kernels, sizes = sketch_kernels(backends.resolve(backend)), np.diff(sequences.offsets)
        bits, shared = kernels.shared_bits(sequences.values, sequences.offsets, left, right)

        # Each bit that is not shared stands for at least one id that is not shared.
        max_of_left, max_of_right = (sizes[side] - bits[side] + shared for side in (left, right))
        may_reach = reach_mask(max_of_left, sizes[left], threshold)
        may_reach |= reach_mask(max_of_right, sizes[right], threshold)
        return may_reach

    def reaches(self, scores: Scores, threshold: float) -> Mask:
        """Decide by the counts, or by the similarities if these are estimates without counts."""
        if scores.intersection is None or scores.smaller is None:
            return _reach_rounded(scores.similarity, threshold)
        return reach_mask(scores.intersection, scores.smaller, threshold)


def intersections(
    ids: Hashes, offsets: Ints, left_rows: Ints, right_rows: Ints, backend: str | None = None
) -> Ints:
    """Return the number of ids that documents left_rows[i] and right_rows[i] share: int64 of m.

    Document j has ids[offsets[j]:offsets[j + 1]], sorted and distinct.
    """
    return sketch_kernels(backends.resolve(backend)).intersections(ids, offsets, left_rows, right_rows)


def count_overlaps(
    features: FeatureSets, left: Ints, right: Ints, backend: str | None = None
) -> tuple[Ints, Ints]:
    """Return the sizes of the intersection and the union of m pairs: two int64 of m.

    `left` and `right` are int64 indexes into `features`.
    """
    sets = Ragged.of(features)
    shared, sizes = intersections(sets.values, sets.offsets, left, right, backend), np.diff(sets.offsets)
    return shared, sizes[left] + sizes[right] - shared


def reach_mask(intersections: Ints, sizes: Ints, threshold: Threshold) -> Mask:
    """Return for which of m pairs intersections / sizes is at least the threshold, an exact decimal number.

    A pair with size 0, whose documents have no features, reaches no threshold.
    """
    exact = exact_threshold(threshold)
    largest = int(max(intersections.max(initial=0), sizes.max(initial=0)))
    if max(exact.numerator, exact.denominator) * largest > _MAX_INT64:
        intersections, sizes = intersections.astype(object), sizes.astype(object)
    reached = intersections * exact.denominator >= sizes * exact.numerator
    return (reached & (sizes > 0)).astype(np.bool_)


def exact_threshold(threshold: Threshold) -> Fraction:
    """Return a threshold as an exact fraction: 0.7 becomes 7/10, not the nearest binary number."""
    return threshold if isinstance(threshold, Fraction) else _fraction(str(threshold))


@lru_cache(maxsize=64)
def _fraction(decimal: str) -> Fraction:
    return Fraction(decimal)


def containment(left: Hashes, right: Hashes) -> tuple[float, float]:
    """Return |A ∩ B| / |A| and |A ∩ B| / |B| of two sorted arrays of distinct ids (Broder 1997).

    Both are in [0, 1]; the result for an empty set is NaN. `BottomK` sketches estimate both.
    """
    shared = len(np.intersect1d(left, right, assume_unique=True))
    share_of_left, share_of_right = (shared / len(ids) if len(ids) else math.nan for ids in (left, right))
    return share_of_left, share_of_right


class _WeightedSums(NamedTuple):
    """Sums over the weights of documents."""

    sums: Sums  # for each of m pairs
    squares: Floats  # for each of n documents the sum of its squared weights, added in the order of ids


def _add_weights(features: FeatureSets, left: Ints, right: Ints, backend: str | None = None) -> _WeightedSums:
    """Compute the sums of m pairs of documents. `left` and `right` are indexes into `features`, arrays of `FEATURE`."""
    sizes = np.array([len(document) for document in features], np.int64)
    offsets = offsets_of(sizes)
    flat = np.concatenate([np.zeros(0, FEATURE), *features])
    ids, weights = np.ascontiguousarray(flat["id"]), np.ascontiguousarray(flat["weight"])
    sums = sketch_kernels(backends.resolve(backend)).sums(ids, weights, offsets, left, right)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return _WeightedSums(sums, add_up(owners, weights * weights, len(sizes)))


def _rounded(values: Floats) -> Floats:
    """Round to 12 decimals, so that rounding errors of sums do not keep a similarity from being exactly 1, 0.9 or 0."""
    return np.round(values, DECIMALS)


def _reach_rounded(similarity: Floats, threshold: float) -> Mask:
    """Return which similarities are at least the threshold, both rounded to 12 decimals."""
    reached: Mask = _rounded(similarity) >= round(threshold, DECIMALS)
    return reached


class WeightedJaccard(Metric):
    """The sum of min(x, y) divided by the sum of max(x, y), for positive weights (Ruzicka 1958; Ioffe 2010).

    The similarity is in [0, 1]. It equals the Jaccard similarity if all weights are 1. With integer weights both sums
    are exact, so 7 of 10 reaches 0.7. A document with a negative weight has no features.
    """

    name = "weighted_jaccard"

    def compare(self, features: FeatureSets, left: Ints, right: Ints, backend: str | None) -> Scores:
        """Compute the ratios to 12 decimals; see `Metric.compare`."""
        sums = _add_weights(features, left, right, backend).sums
        return Scores(_rounded(sums.minima / sums.maxima))


class Cosine(Metric):
    """x.y / (|x| |y|), in [-1, 1]: 1 for vectors of the same direction, 0 for vectors without a common feature."""

    name = "cosine"
    signed = True

    def compare(self, features: FeatureSets, left: Ints, right: Ints, backend: str | None) -> Scores:
        """Compute the cosines to 12 decimals; see `Metric.compare`."""
        sums, squares = _add_weights(features, left, right, backend)
        return Scores(_rounded(_ratio(sums.products, squares[left], squares[right])))


def _ratio(products: Floats, left: Floats, right: Floats) -> Floats:
    """Divide dot products by the root of the product of both squared lengths.

    The result is exactly 1 for two equal vectors.
    """
    # A single square root rounds only once. Use the product of two square roots only if the product of the squares may
    # be out of the range of float64.
    lengths = np.sqrt(left) * np.sqrt(right)
    product = left * right
    is_in_range = (product > 1e-280) & (product < 1e280)
    lengths[is_in_range] = np.sqrt(product[is_in_range])
    ratios: Floats = np.clip(products / lengths, -1, 1)
    return ratios


class Euclidean(Metric):
    """The root of the sum of the squared differences, 0 or more. The similarity is 1 / (1 + distance).

    The threshold of a recipe is the largest distance of a pair.
    """

    name = "euclidean"
    signed = True

    def compare(self, features: FeatureSets, left: Ints, right: Ints, backend: str | None) -> Scores:
        """Compute the distances to 12 decimals, and from these the similarities in (0, 1]; see `Metric.compare`."""
        squares = _add_weights(features, left, right, backend).sums.squares
        distance = _rounded(np.sqrt(squares))
        return Scores(1 / (1 + distance), distance=distance)

    def reaches(self, scores: Scores, threshold: float) -> Mask:
        """Decide by the distances to 12 decimals, or by the similarities if these are estimates without distances."""
        if scores.distance is None:
            return _reach_rounded(scores.similarity, self.similarity_at_threshold(threshold))
        reached: Mask = scores.distance <= round(threshold, DECIMALS)
        return reached

    def similarity_at_threshold(self, threshold: float) -> float:
        """Return 1 / (1 + threshold)."""
        return 1 / (1 + threshold)


METRICS: dict[str, Metric] = {
    metric.name: metric for metric in (Jaccard(), Containment(), WeightedJaccard(), Cosine(), Euclidean())
}
