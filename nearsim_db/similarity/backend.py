"""The choice between two bit-identical back ends: compiled by numba, or plain NumPy."""

import importlib.util
from functools import cache
from importlib import import_module
from threading import Event
from typing import TYPE_CHECKING, Any, Literal

from nearsim_db.errors import NearsimError

if TYPE_CHECKING:
    from nearsim_db.similarity.sketch.kernels import SketchKernels
    from nearsim_db.similarity.text.kernels import TextKernels

# "later" is NumPy until NUMBA_STARTED.
Backend = Literal["numba", "numpy", "later"]

# Set once this process has encoded as much as numba's start takes.
NUMBA_STARTED = Event()

# About 2,000 stories, which are encoded without numba if more may follow.
FIRST_PLAIN_CHARACTERS = 2_500_000
# NumPy takes 0.6 s of processor time longer than numba for so many characters of stories, as long as numba's start.
_MAX_PLAIN_CHARACTERS = 16_000_000
# Content of files up to this size is encoded without numba; some texts are encoded again to be verified.
_MAX_SMALL_BYTES = 12_000_000


def resolve(requested: str | None = None) -> Backend:
    """Return the requested back end, by default numba if it is installed, else NumPy.

    Raises NearsimError if numba is requested and not installed. Does not import numba, which is slow.
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
    """Return how many characters to encode without numba, if the texts have about so many bytes, None if unknown."""
    if expected_bytes is None:
        return FIRST_PLAIN_CHARACTERS
    return _MAX_PLAIN_CHARACTERS if expected_bytes <= _MAX_SMALL_BYTES else 0


def sketch_kernels(backend: Backend) -> "SketchKernels":
    """Return the kernels of a back end for ids; numba is only imported if it is used."""
    return _load_kernels("sketch", backend)  # type: ignore[no-any-return]


def text_kernels(backend: Backend) -> "TextKernels":
    """Return the kernels of a back end for bytes; numba is only imported if it is used."""
    return _load_kernels("text", backend)  # type: ignore[no-any-return]


def _load_kernels(subject: str, backend: Backend) -> Any:
    is_compiled = backend == "numba" or (backend == "later" and NUMBA_STARTED.is_set())
    return _load(f"nearsim_db.similarity.{subject}.kernels.{'compiled' if is_compiled else 'plain'}")


_load = cache(import_module)
