"""The k rarest features of a document, as keys for the join of similar records.

A nearest-neighbour join by rare features ranks ahead of MinHash on records (Papadakis et al.: Benchmarking Filtering
Techniques for Entity Resolution, ICDE 2023). Two documents of cosine s by inverse document frequencies share one of
the keys about as often as if each were shared with probability s: of pairs of titles from 0.5 on, 6 keys found .984
and 10 keys .998, where 1 - (1 - s)^k is .984 and .999 at 0.5.

Fewer are kept where the rest of a document cannot reach the similarity (prefix filtering: Chaudhuri, Ganti and Kaushik,
ICDE 2006): by Cauchy and Schwarz features of length r have at most the cosine r / |x| with any document. So the rarest
feature that two documents share is a key of both, unless k cuts it off.

Sketches have the format of `bottom_k`, so documents of fewer features than k have as many keys as others. All ids are
keys. The shared share of them, which is the estimate, is no estimate of the cosine: pairs are always verified.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Mask, Sketches, offsets_of
from nearsim_db.similarity.sketch.bottom_k import BottomK
from nearsim_db.similarity.sketch.family import RowAgreements, window
from nearsim_db.similarity.sketch.kernels import KnownPairs

_UNITS_PER_SQUARED_WEIGHT = 1 << 20
# Lowers a bound of a squared length by more than rounding to units loses.
_ROUNDING_MARGIN = 1 - 1e-4


class Rare(BottomK):
    """Sketches of the k ids of the largest weights, for the cosine; equal weights are ordered by the seed."""

    name = "rare"
    metric = "cosine"
    options: ClassVar[Mapping[str, Sequence[str]]] = {"weights": ("idf",), "least": ()}

    def __init__(
        self, k: int = 10, seed: int = 1, id_bits: int = 64, backend: str | None = None, least: float = 0.0
    ) -> None:
        """Features without which two documents cannot have the cosine `least` are kept, the rarest k of them."""
        super().__init__(k, seed, id_bits, backend)
        self.least = least

    def sketch(self, ids: Hashes, offsets: Ints, weights: Floats | None = None) -> Sketches:
        """Return the sketches of a batch; see `Family.sketch`."""
        ids, bounds, weights = window(ids, offsets, weights)
        points, sizes = self._points(ids), np.diff(bounds)
        owners = np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((points, -weights, owners))
        are_kept = np.arange(len(order)) - bounds[owners] < self.k
        if self.least:
            are_kept &= _rests(weights[order], bounds, owners) >= _ROUNDING_MARGIN * self.least**2
        kept = offsets_of(are_kept)[bounds]
        return self._kernels.smallest(points[order[are_kept]], kept, self.k)

    def salted(self, sketches: Sketches, salts: Hashes) -> Sketches:
        """Alter the ids of each document, and sort them anew; see `Family.salted`."""
        altered = np.sort(sketches ^ salts[:, None].astype(sketches.dtype), axis=1)
        # The largest id fills the rest, as in sketches of `bottom_k`.
        repeats = np.zeros(altered.shape, bool)
        repeats[:, 1:] = altered[:, 1:] == altered[:, :-1]
        return np.sort(np.where(repeats, altered[:, -1:], altered), axis=1)

    def first_similar(
        self, sketches: Sketches, present: Mask, threshold: Fraction, decided: KnownPairs
    ) -> Ints:
        """Raise RecipeError: the keys do not estimate a similarity."""
        raise RecipeError(
            "sketches of rare do not estimate similarities; use a profile of another family for result sets"
        )

    def may_reach(self, counts: RowAgreements, similarity: float, standard_errors: float) -> Mask:
        """Rule no pair out; see `Family.may_reach`."""
        return np.ones(len(counts.shared), np.bool_)


def _rests(weights: Floats, bounds: Ints, owners: Ints) -> Floats:
    """Return the share of a document's squared length that each feature has together with the features after it.

    Integers are added, so that it does not depend on the other documents.
    """
    squares = np.rint(weights**2 * _UNITS_PER_SQUARED_WEIGHT).astype(np.int64)
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(squares)))
    totals = np.maximum(np.diff(sums[bounds]), 1)
    return (sums[bounds[owners + 1]] - sums[:-1]) / totals[owners]
