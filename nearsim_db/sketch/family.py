"""The contract of a sketch family, and the families there are."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.sketch import fast_similarity, minhash
from nearsim_db.sketch.kernels import Ids, Offsets


class Family(Protocol):
    """A way to summarise a set of ids in k positions, so that two sketches tell how alike the sets are.

    Sketches are compared only with sketches of the same family, k, seed, id bits, options and scheme version.
    """

    @property
    def name(self) -> str:
        """The family's name in a recipe."""

    @property
    def k(self) -> int:
        """Positions of a sketch."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a position."""

    @property
    def metric(self) -> str:
        """The similarity that is estimated: jaccard."""

    @property
    def scheme_version(self) -> int:
        """Raised whenever the same parameters come to give other sketches."""

    def sketch(self, ids: Ids, offsets: Offsets) -> NDArray[Any]:
        """The sketches of n documents: (n, k) of `dtype`.

        `ids` is flat, `offsets` int64 of n + 1: document i has ids[offsets[i]:offsets[i + 1]], in any order,
        with or without repeats. A document without ids has no sketch: its row is all zeros and must be
        ignored.
        """

    def estimate(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
        """The estimated similarity, row by row: (m, k) and (m, k) to float64 of m, each in [0, 1]."""

    def collision_probability(self, similarity: float) -> float:
        """The probability that two documents of this similarity agree in one position."""

    def standard_error(self, similarity: float) -> float:
        """The standard deviation of the estimate at this similarity, or an upper bound of it."""


FamilyMaker = Callable[[int, int, int, Mapping[str, str], str | None], Family]

FAMILIES: dict[str, FamilyMaker] = {
    fast_similarity.NAME: fast_similarity.make,
    minhash.NAME: minhash.make,
}


def make_family(
    name: str,
    k: int,
    seed: int,
    id_bits: int = 64,
    options: Mapping[str, str] | None = None,
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
