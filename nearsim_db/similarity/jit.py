"""Compilation of kernels, and mixing in them. Imports numba, so only kernel modules import this, lazily."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import uint64

from nearsim_db.similarity.mixing import FMIX64_FIRST, FMIX64_SECOND

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """Compile at first call, without the GIL, and cache the result on disk if a folder is writable."""
    try:
        if not cast(Any, numba.config).CACHE_DIR:
            Path.home()  # without one numba would use a folder named ~ in the working directory
        return cast(Kernel, _compiler(cache=True)(function))
    except RuntimeError:
        # numba refuses, too, in a read-only install without a writable cache folder.
        return cast(Kernel, _compiler(cache=False)(function))


def inlined(function: Kernel) -> Kernel:
    """Compile as part of each kernel that calls it."""
    return cast(Kernel, numba.njit(inline="always", boundscheck=False, error_model="numpy")(function))


def _compiler(*, cache: bool) -> Callable[[Callable[..., Any]], Any]:
    return numba.njit(cache=cache, nogil=True, boundscheck=False, error_model="numpy")


_FIRST = np.uint64(FMIX64_FIRST)
_SECOND = np.uint64(FMIX64_SECOND)


@inlined
def fmix64(value: np.uint64) -> np.uint64:
    """Mix one value."""
    value = uint64(value)
    value = (value ^ (value >> uint64(33))) * _FIRST
    value = (value ^ (value >> uint64(33))) * _SECOND
    return value ^ (value >> uint64(33))
