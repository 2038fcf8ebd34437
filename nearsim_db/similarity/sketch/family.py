"""The contract of a sketch family, and the families there are."""

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
from nearsim_db.similarity.sketch.kernels import Counts, Ids, KnownPairs, Offsets, Weights


class Family(Protocol):
    """A way to summarise features in k values, so that two sketches tell how alike the features are.

    Sketches are compared only with sketches of the same family, k, seed, id bits, options and scheme version.
    """

    @property
    def name(self) -> str:
        """The family's name in a recipe."""

    @property
    def k(self) -> int:
        """Values of a sketch."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a value."""

    @property
    def metric(self) -> str:
        """What is estimated: jaccard, weighted_jaccard, cosine, euclidean.

        A similarity is at most 1; of a euclidean distance d it is 1 / (1 + d).
        """

    @property
    def scheme_version(self) -> int:
        """Raised whenever the same parameters come to give other sketches."""

    @property
    def positional(self) -> bool:
        """Whether sketches are compared position by position, so that bands may have any number of rows.

        Where they are not, each band key is made of one id, and bands have one row.
        """

    def sketch(self, ids: Ids, offsets: Offsets, weights: Weights | None = None) -> NDArray[Any]:
        """The sketches of n documents: (n, k) of `dtype`.

        `ids` is flat, `offsets` int64 of n + 1: document i has ids[offsets[i]:offsets[i + 1]]. Where the metric knows
        no weights, ids are in any order, with or without repeats; else `weights` is float64, as long as ids, which are
        sorted and distinct in each document. A document without ids has no sketch: its row is all zeros and must be
        ignored.
        """

    def estimate(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
        """The estimated similarity, row by row: (m, k) and (m, k) to float64 of m, each at most 1."""

    def agreements(self, left: NDArray[Any], right: NDArray[Any]) -> tuple[Counts, Counts]:
        """How many places agree, row by row, and how many were compared; for Jaccard the estimate is their ratio."""

    def band_keys(
        self, sketches: NDArray[Any], bands: int, rows: int, scheme: str, seed: int
    ) -> NDArray[np.uint64]:
        """The bucket hashes (n, bands): the band's number in the top byte, a hash of what is in it below.

        Raises RecipeError for a banding or a scheme that the family cannot have.
        """

    def count_shared_bands(
        self, left: NDArray[Any], right: NDArray[Any], bands: int, rows: int, scheme: str, seed: int
    ) -> Counts:
        """How many band keys two sketches have in common, row by row: (m, k) and (m, k) to int64 of m."""

    def matched_bands(
        self, left: NDArray[Any], right: NDArray[Any], bands: int, rows: int, scheme: str, seed: int
    ) -> NDArray[np.bool_]:
        """Which of left's band keys right has too, row by row: (m, k) and (m, k) to bool of (m, bands)."""

    def first_similar(
        self, sketches: NDArray[Any], present: NDArray[np.bool_], threshold: Fraction, decided: KnownPairs
    ) -> Counts:
        """For each sketch the row of the first earlier one that stays and is alike, -1 where there is none.

        A row stays if it has none. Alike are rows whose estimate reaches the threshold, above 0; rows that are not
        `present` have no sketch and are like none. `decided` says otherwise of single pairs.
        """

    def collision_probability(self, similarity: float) -> float:
        """The probability that two documents of this similarity agree in one position, or share a key of one id."""

    def standard_error(self, similarity: float) -> float:
        """The standard deviation of the estimate at this similarity, or an upper bound of it."""


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
    """The family of this name and these parameters.

    `id_bits` is 64 for ids mixed over their full range, 32 for raw CRC-32 or djb2a values; `options` are the
    family's own; `backend` is "numba", "numpy" or None for the faster one installed: both give the same bits.
    Raises RecipeError for an unknown family or option and for an impossible value.
    """
    if name not in FAMILIES:
        raise RecipeError(f"there is no sketch family {name!r}; choose one of {', '.join(FAMILIES)}")
    return FAMILIES[name](k, seed, id_bits, options or {}, backend)
