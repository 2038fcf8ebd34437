"""The choice between two bit-identical back ends: compiled by numba, or plain NumPy."""

import importlib.util
from typing import Literal

from nearsim_db.errors import NearsimError

Backend = Literal["numba", "numpy"]


def resolve(requested: str | None = None) -> Backend:
    """Return the requested back end, by default numba if it is installed, else NumPy.

    Raises NearsimError if numba is requested and not installed. Does not import numba, which is slow.
    """
    if requested == "numpy":
        return "numpy"
    installed = importlib.util.find_spec("numba") is not None
    if requested == "numba" and not installed:
        raise NearsimError("the numba back end is not installed; pip install 'nearsim-db[fast]'")
    return "numba" if installed else "numpy"
