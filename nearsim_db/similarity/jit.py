"""How kernels are compiled; imports numba, so only kernel modules import this, and those lazily."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """Compile at first call, releasing the GIL, with the result kept on disk where some folder is writable."""
    try:
        return cast(Kernel, _compiler(cache=True)(function))
    except RuntimeError:
        # A read-only install without a writable cache folder: numba refuses to cache, so compile each time.
        return cast(Kernel, _compiler(cache=False)(function))


def inlined(function: Kernel) -> Kernel:
    """Compile as part of every kernel that calls it."""
    return cast(Kernel, numba.njit(inline="always", boundscheck=False, error_model="numpy")(function))


def _compiler(*, cache: bool) -> Callable[[Callable[..., Any]], Any]:
    return numba.njit(cache=cache, nogil=True, boundscheck=False, error_model="numpy")
