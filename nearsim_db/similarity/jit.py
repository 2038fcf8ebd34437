"""Compilation of kernels by numba, and a compiled `fmix64`.

This module imports numba, which is slow, so only modules of compiled kernels import it, and only when they are used.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import uint64

from nearsim_db.similarity.mixing import FMIX64_FIRST, FMIX64_SECOND

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """Compile a function at its first call, to run without the GIL. Cache it on disk if there is a writable folder."""
    try:
        if not cast(Any, numba.config).CACHE_DIR:
            # Raises RuntimeError if there is no home folder; numba would create a folder named ~ in the working folder.
            Path.home()
        return cast(Kernel, _compiler(cache=True)(function))
    except RuntimeError:
        # numba raises it, too, in a read-only installation without a writable cache folder.
        return cast(Kernel, _compiler(cache=False)(function))


def inlined(function: Kernel) -> Kernel:
    """Compile a function as part of each kernel that calls it."""
    return cast(Kernel, numba.njit(inline="always", boundscheck=False, error_model="numpy")(function))


def _compiler(*, cache: bool) -> Callable[[Callable[..., Any]], Any]:
    return numba.njit(cache=cache, nogil=True, boundscheck=False, error_model="numpy")


_FIRST = np.uint64(FMIX64_FIRST)
_SECOND = np.uint64(FMIX64_SECOND)


@inlined
def fmix64(value: np.uint64) -> np.uint64:
    """Mix a value as `mixing.fmix64` does."""
    value = uint64(value)
    value = (value ^ (value >> uint64(33))) * _FIRST
    value = (value ^ (value >> uint64(33))) * _SECOND
    return value ^ (value >> uint64(33))
