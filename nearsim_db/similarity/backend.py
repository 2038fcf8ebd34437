"""The choice of the back end: kernels compiled by numba, or plain NumPy. Both give identical results."""

import importlib.util
from functools import cache
from importlib import import_module
from threading import Event
from typing import TYPE_CHECKING, Any, Literal

from nearsim_db.errors import NearsimError

if TYPE_CHECKING:
    from nearsim_db.similarity.sketch.kernels import SketchKernels
    from nearsim_db.similarity.text.kernels import TextKernels

# "later" means NumPy until NUMBA_STARTED is set, and then numba.
Backend = Literal["numba", "numpy", "later"]

# Set when this process has encoded so many characters with NumPy that starting numba is worth its time.
NUMBA_STARTED = Event()

# The number of characters to encode without numba if the total is unknown: about 2,000 stories.
FIRST_PLAIN_CHARACTERS = 2_500_000
# For this number of characters of stories, NumPy takes 0.6 s of processor time more than numba, which is the time that
# numba takes to start.
_MAX_PLAIN_CHARACTERS = 16_000_000
# Files up to this size are encoded without numba. The limit is below _MAX_PLAIN_CHARACTERS, because some texts are
# encoded again to verify pairs.
_MAX_SMALL_BYTES = 12_000_000


def resolve(requested: str | None = None) -> Backend:
    """Return the requested back end. The default is numba if it is installed, otherwise NumPy.

    Raises NearsimError if numba is requested but not installed. Does not import numba, because that is slow.
    """
    if requested == "numpy":
        return "numpy"
    if requested == "later":
        return "later"
    installed = importlib.util.find_spec("numba") is not None
    if requested == "numba" and not installed:
        raise NearsimError("the numba back end is not installed; pip install 'nearsim-db[fast]'")
    return "numba" if installed else "numpy"


def plain_characters(expected_bytes: int | None) -> int:
    """Return the number of characters to encode without numba.

    `expected_bytes` is the approximate size of all texts, or None if it is unknown.
    """
    if expected_bytes is None:
        return FIRST_PLAIN_CHARACTERS
    return _MAX_PLAIN_CHARACTERS if expected_bytes <= _MAX_SMALL_BYTES else 0


def sketch_kernels(backend: Backend) -> "SketchKernels":
    """Return the sketch kernels of a back end. numba is imported only if the back end uses it."""
    return _load_kernels("sketch", backend)  # type: ignore[no-any-return]


def text_kernels(backend: Backend) -> "TextKernels":
    """Return the text kernels of a back end. numba is imported only if the back end uses it."""
    return _load_kernels("text", backend)  # type: ignore[no-any-return]


def _load_kernels(subject: str, backend: Backend) -> Any:
    is_compiled = backend == "numba" or (backend == "later" and NUMBA_STARTED.is_set())
    return _load(f"nearsim_db.similarity.{subject}.kernels.{'compiled' if is_compiled else 'plain'}")


_load = cache(import_module)
