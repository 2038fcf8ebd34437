"""The base class of sketch families: what a family must implement, and what most families have in common."""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from nearsim_db.errors import RecipeError
from nearsim_db.similarity import backend as backends
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Keys, Mask, Sketches
from nearsim_db.similarity.backend import sketch_kernels
from nearsim_db.similarity.mixing import GOLDEN, fmix64
from nearsim_db.similarity.sketch import bands as cut
from nearsim_db.similarity.sketch.bands import Banding
from nearsim_db.similarity.sketch.kernels import KnownPairs

if TYPE_CHECKING:
    from nearsim_db.similarity.sketch.kernels import SketchKernels

MAX_K = 65536
INPUTS, WEIGHTS = ("terms", "vector"), ("count", "log", "idf")
_SKETCH_BYTES_AT_ONCE = 1 << 24


class RowAgreements(NamedTuple):
    """For each of m pairs of sketches, counts of what the two sketches share."""

    shared: Ints  # band keys that both sketches have
    agreeing: Ints  # places with equal values
    compared: Ints  # places that were compared


class Family(ABC):
    """A method to summarise features in k values, so that two sketches estimate the similarity of the features.

    Sketches are comparable only if they have the same family, k, seed, id bits, options and scheme version.

    The methods implemented here are right for families whose positions agree with a probability equal to the
    similarity. They ignore that the values of two different ids, or darts, are equal with probability 2^-32.
    """

    name: ClassVar[str]
    """The name of the family in recipes."""
    metric: ClassVar[str]
    """The metric that sketches estimate: jaccard, containment, weighted_jaccard, cosine, euclidean. A similarity is at
    most 1; for a Euclidean distance d it is 1 / (1 + d)."""
    scheme_version: ClassVar[int] = 1
    """Increment this number when the same parameters give other sketches."""
    positional: ClassVar[bool] = True
    """Whether sketches are compared position by position, so that bands may have any number of rows. Otherwise each
    band key is made from one id, and bands have one row."""
    ordered: ClassVar[bool] = False
    """Whether the family takes ids in the order of the text, with repetitions. A sketch is then a single value of type
    object, and the number of band keys of a document depends on its text."""
    options: ClassVar[Mapping[str, Sequence[str]]] = {}
    """The options of the family with their allowed values; an empty sequence allows any value."""
    feature_options: ClassVar[Sequence[str]] = ("weights",)
    """Options that describe the features and do not change how they are sketched."""
    k: int
    """The number of values in a sketch."""
    dtype: np.dtype[Any]
    """The type of a value."""

    def __init__(self, k: int, seed: int, id_bits: int, backend: str | None) -> None:
        """Raise RecipeError for a k outside 1..65536, and for ids that have neither 32 nor 64 bits."""
        if not 1 <= k <= MAX_K:
            raise RecipeError(f"sketch.k is {k}; choose a value in 1..{MAX_K}")
        if id_bits not in (32, 64):
            raise RecipeError(f"ids of {id_bits} bits are not supported; choose 32 or 64")
        self.k = k
        self._backend = backends.resolve(backend)

    @property
    def _kernels(self) -> "SketchKernels":
        return sketch_kernels(self._backend)

    @abstractmethod
    def sketch(self, ids: Hashes, offsets: Ints, weights: Floats | None = None) -> Sketches:
        """Return the sketches of n documents: (n, k) of `dtype`.

        Document i has ids[offsets[i]:offsets[i + 1]], where `offsets` is int64 of n + 1. For a metric without weights,
        ids may be in any order and may repeat. For a metric with weights, the ids of a document are sorted and
        distinct, and `weights` has the weight of each id, or is None if all weights are 1. A document without ids has
        no sketch: its row is all zeros and must be ignored.
        """

    def salted(self, sketches: Sketches, salts: Hashes) -> Sketches:
        """Alter sketches, (n, k), by the salt of each document, uint64 of n.

        Two sketches with the same salt stay as similar as they were. Two sketches with different salts become as
        different as the sketches of unrelated documents. A salt of 0 changes nothing.
        """
        places = np.arange(1, sketches.shape[1] + 1, dtype=np.uint64)
        steps: Hashes = places * np.uint64(GOLDEN)
        words = fmix64(salts[:, None] + steps)
        words[salts == 0] = 0
        if sketches.dtype.itemsize == 8:
            words &= np.uint64(0xFFFFFFFF)  # values of prime32 must stay below 2^33
        elif self.dtype == np.uint8:
            words &= np.uint64(1)
        altered: Sketches = sketches ^ words.astype(sketches.dtype)
        return altered

    def estimate(self, left: Sketches, right: Sketches) -> Floats:
        """Return the estimated similarity, row by row: (m, k) and (m, k) to float64 of m, each at most 1."""
        return self.similarities(*self.agreements(left, right))

    def agreements(self, left: Sketches, right: Sketches) -> tuple[Ints, Ints]:
        """Count agreeing and compared places, row by row. For Jaccard, the estimate is the ratio of the two counts."""
        equal: Ints = (left == right).sum(axis=1, dtype=np.int64)
        return equal, np.full(len(equal), self.k, np.int64)

    def similarities(self, agreeing: Ints, compared: Ints) -> Floats:
        """Return the estimated similarities of m pairs, float64, from the counts that `agreements` returns."""
        shares: Floats = agreeing / compared
        return shares

    def compare_rows(self, sketches: Sketches, left: Ints, right: Ints, banding: Banding) -> RowAgreements:
        """Return the shared bands and the agreements of m pairs. `left` and `right` are int64 rows of `sketches`.

        If possible, rows are compared in place. If the band hash requires band keys, sketches are copied, for a limited
        number of pairs at a time.
        """
        if self.positional and banding.scheme == "mix64":
            agreeing, shared = self._kernels.count_agreements(
                sketches, left, right, banding.bands, banding.rows
            )
            return RowAgreements(shared, agreeing, np.full(len(agreeing), self.k, np.int64))

        counts = RowAgreements(*(np.empty(len(left), np.int64) for _ in range(3)))
        step = max(1, _SKETCH_BYTES_AT_ONCE // max(1, sketches[:1].nbytes))
        for at in range(0, len(left), step):
            part = slice(at, at + step)
            sides = sketches[left[part]], sketches[right[part]]
            counts.shared[part] = self.count_shared_bands(*sides, banding)
            counts.agreeing[part], counts.compared[part] = self.agreements(*sides)
        return counts

    def band_keys(self, sketches: Sketches, banding: Banding) -> Keys:
        """Return the bucket hashes (n, bands), each with the band's number in the top byte and a hash of its rows
        below.

        Raises RecipeError for a banding or a hash scheme that the family does not support.
        """
        return cut.band_keys(sketches, banding, backend=self._backend)

    def count_shared_bands(self, left: Sketches, right: Sketches, banding: Banding) -> Ints:
        """Count the band keys that two sketches share, row by row: (m, k) and (m, k) to int64 of m."""
        counts: Ints = self.matched_bands(left, right, banding).sum(axis=1, dtype=np.int64)
        return counts

    def matched_bands(self, left: Sketches, right: Sketches, banding: Banding) -> Mask:
        """Return which band keys of `left` are in `right` too, row by row: (m, k) and (m, k) to bool of (m, bands)."""
        return cut.matched_bands(left, right, banding)

    def first_similar(
        self, sketches: Sketches, present: Mask, threshold: Fraction, decided: KnownPairs
    ) -> Ints:
        """Return for each row the first earlier row that was kept and is similar, or -1 if there is none.

        A row is kept if no row that was kept before it is similar. Two rows are similar if the estimate of their
        similarity reaches the threshold, which is above 0. A row that is not `present` has no sketch, and no row is
        similar to it. `decided` overrides the result for single pairs. The comparison of two rows stops as soon as the
        remaining positions cannot change the result.
        """
        return self._kernels.first_similar_positions(
            sketches, present, self._least_agreeing(threshold), decided
        )

    def _least_agreeing(self, threshold: Fraction) -> int:
        return least_agreeing(threshold, self.k)

    def collision_probability(self, similarity: float) -> float:
        """Return the probability that two documents of this similarity agree in a position.

        For a family that is not positional it is the probability that they share a band key.
        """
        return similarity

    def standard_error(self, similarity: float) -> float:
        """Return the standard deviation of the estimate at this similarity, or an upper bound.

        It is the binomial sqrt(s (1 - s) / k). The error of fast_similarity is smaller for small sets.
        """
        return binomial_standard_error(similarity, self.k)

    def may_reach(self, counts: RowAgreements, similarity: float, standard_errors: float) -> Mask:
        """Return which of m pairs may have this similarity: bool of m.

        A pair may have it if it does not agree less often than expected by more than `standard_errors` standard errors.
        """
        # The error of the fraction of agreeing places is symmetric; the error of a cosine or a distance is not.
        share = self.collision_probability(similarity)
        return counts.agreeing / counts.compared >= share - standard_errors * binomial_standard_error(
            share, self.k
        )


class Curved(Family):
    """A family whose similarity is an increasing function of the fraction of equal positions."""

    @abstractmethod
    def similarity_of(self, agreeing: int) -> float:
        """Return the similarity estimated from this number of equal positions; 1 if all are equal."""

    def similarities(self, agreeing: Ints, compared: Ints) -> Floats:
        """Convert numbers of equal positions to similarities; see `Family.similarities`."""
        counts, indexes = np.unique(agreeing, return_inverse=True)
        similarities = np.array([self.similarity_of(count) for count in counts.tolist()], np.float64)
        return similarities[indexes]

    def _least_agreeing(self, threshold: Fraction) -> int:
        return bisect_left(range(self.k), float(threshold), key=self.similarity_of)


def least_agreeing(threshold: Fraction, compared: int) -> int:
    """Return the least number of agreements among `compared` places that reaches a threshold."""
    return -(-threshold.numerator * compared // threshold.denominator)


def binomial_standard_error(similarity: float, k: int) -> float:
    """Return the standard deviation of the mean of k independent trials: sqrt(s (1 - s) / k)."""
    return math.sqrt(similarity * (1 - similarity) / k)


def window(ids: Hashes, offsets: Ints, weights: Floats | None) -> tuple[Hashes, Ints, Floats]:
    """Return the ids and weights from the first to the last offset, and offsets that begin at 0.

    Weights are 1 if `weights` is None.
    """
    begin, end = int(offsets[0]), int(offsets[-1])
    selected = np.ones(end - begin) if weights is None else weights[begin:end]
    return ids[begin:end], offsets - begin, selected
