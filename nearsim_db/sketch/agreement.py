"""What the families share whose sketches agree in a position with probability equal to the similarity."""

import math

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError

MAX_K = 65536


def agreement(left: NDArray[np.generic], right: NDArray[np.generic]) -> NDArray[np.float64]:
    """The share of equal positions, row by row: (m, k) and (m, k) to float64 of m, each in [0, 1]."""
    shares: NDArray[np.float64] = (left == right).mean(axis=1, dtype=np.float64)
    return shares


def binomial_standard_error(similarity: float, k: int) -> float:
    """The standard deviation of the mean of k independent trials: sqrt(s (1 - s) / k)."""
    return math.sqrt(similarity * (1 - similarity) / k)


def check_size(k: int) -> None:
    """Raise RecipeError unless k is in 1..65536."""
    if not 1 <= k <= MAX_K:
        raise RecipeError(f"a sketch of k = {k} positions is impossible; choose k in 1..{MAX_K}")


def check_id_bits(id_bits: int) -> None:
    """Raise RecipeError unless the ids are of 32 or 64 bits."""
    if id_bits not in (32, 64):
        raise RecipeError(f"ids of {id_bits} bits are not supported; choose 32 or 64")
