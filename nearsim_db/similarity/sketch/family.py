"""The contract of a sketch family, and the table of families."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.sketch import (
    bottom_k,
    dart_minhash,
    fast_similarity,
    hyperplane,
    minhash,
    projection,
)
from nearsim_db.similarity.sketch.bands import Banding
from nearsim_db.similarity.sketch.kernels import Counts, Ids, KnownPairs, Offsets, Weights
from nearsim_db.similarity.sketch.row_pairs import RowAgreements


class Family(Protocol):
    """A method to summarise features in k values, so that two sketches estimate the similarity of the features.

    Sketches are comparable only with sketches of the same family, k, seed, id bits, options and scheme version.
    """

    @property
    def name(self) -> str:
        """Its name in recipes."""

    @property
    def k(self) -> int:
        """The number of values of a sketch."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a value."""

    @property
    def metric(self) -> str:
        """The metric it estimates: jaccard, weighted_jaccard, cosine, euclidean.

        A similarity is at most 1; for a Euclidean distance d it is 1 / (1 + d).
        """

    @property
    def scheme_version(self) -> int:
        """Increment when the same parameters give other sketches."""

    @property
    def positional(self) -> bool:
        """Whether sketches are compared position by position, so that bands may have any number of rows.

        If not, each band key is made from one id, and bands have one row.
        """

    def sketch(self, ids: Ids, offsets: Offsets, weights: Weights | None = None) -> NDArray[Any]:
        """Return the sketches of n documents: (n, k) of `dtype`.

        `ids` is flat, `offsets` int64 of n + 1: document i has ids[offsets[i]:offsets[i + 1]]. For a metric
        without weights, ids may be in any order and repeat; else `weights` is float64, as long as ids, which
        are sorted and distinct in each document. A document without ids has no sketch: its row is all zeros and
        must be ignored.
        """

    def estimate(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
        """Return the estimated similarity, row by row: (m, k) and (m, k) to float64 of m, each at most 1."""

    def agreements(self, left: NDArray[Any], right: NDArray[Any]) -> tuple[Counts, Counts]:
        """Count agreeing and compared places, row by row; for Jaccard the estimate is their ratio."""

    def similarities(self, agreeing: Counts, compared: Counts) -> NDArray[np.float64]:
        """Return the estimated similarities of pairs with these `agreements`: float64 of m."""

    def compare_rows(
        self, sketches: NDArray[Any], left: Counts, right: Counts, banding: Banding
    ) -> RowAgreements:
        """Return shared bands and agreements of m pairs, given as int64 rows into `sketches`."""

    def band_keys(self, sketches: NDArray[Any], banding: Banding) -> NDArray[np.uint64]:
        """Return the bucket hashes (n, bands): the band's number in the top byte, a hash of its content below.

        Raises RecipeError for a banding or a scheme that the family does not support.
        """

    def count_shared_bands(self, left: NDArray[Any], right: NDArray[Any], banding: Banding) -> Counts:
        """Count the band keys that two sketches share, row by row: (m, k) and (m, k) to int64 of m."""

    def matched_bands(self, left: NDArray[Any], right: NDArray[Any], banding: Banding) -> NDArray[np.bool_]:
        """Return which of left's band keys right has too, row by row: (m, k) and (m, k) to bool of (m, bands)."""

    def first_similar(
        self, sketches: NDArray[Any], present: NDArray[np.bool_], threshold: Fraction, decided: KnownPairs
    ) -> Counts:
        """Return for each sketch the row of the first earlier kept sketch that is similar, -1 if there is none.

        A row without a similar one is kept. Rows are similar if their estimate reaches the threshold, which is
        above 0; rows that are not `present` have no sketch and are similar to none. `decided` overrides single
        pairs.
        """

    def collision_probability(self, similarity: float) -> float:
        """Return the probability that two documents of this similarity agree in one position, or share a key of
        one id.
        """

    def standard_error(self, similarity: float) -> float:
        """Return the standard deviation of the estimate at this similarity, or an upper bound."""


Options = Mapping[str, str | float]
FamilyMaker = Callable[[int, int, int, Options, str | None], Family]

FAMILIES: dict[str, FamilyMaker] = {
    fast_similarity.NAME: fast_similarity.make,
    minhash.NAME: minhash.make,
    bottom_k.NAME: bottom_k.make,
    hyperplane.NAME: hyperplane.make,
    projection.NAME: projection.make,
    dart_minhash.NAME: dart_minhash.make,
}


def make_family(
    name: str,
    k: int,
    seed: int,
    id_bits: int = 64,
    options: Options | None = None,
    backend: str | None = None,
) -> Family:
    """Return the family with this name and these parameters.

    `id_bits` is 64 for ids mixed over their full range, 32 for raw CRC-32 or djb2a values; `options` are the
    family's own; `backend` is "numba", "numpy" or None for the faster one installed: both give the same bits.
    Raises RecipeError for an unknown family or option and for a value out of range.
    """
    if name not in FAMILIES:
        raise RecipeError(f"unknown sketch family {name!r}; choose one of {', '.join(FAMILIES)}")
    return FAMILIES[name](k, seed, id_bits, options or {}, backend)
