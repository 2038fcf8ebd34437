"""Which of the two bit-identical back ends computes: compiled by numba, or plain NumPy."""

import importlib.util
from typing import Literal

from nearsim_db.errors import NearsimError

Backend = Literal["numba", "numpy"]


def resolve(asked: str | None = None) -> Backend:
    """The back end to use: the one asked for, else numba where it is installed, else NumPy.

    Raises NearsimError when numba is asked for and not installed. Does not import numba, which is slow.
    """
    if asked == "numpy":
        return "numpy"
    installed = importlib.util.find_spec("numba") is not None
    if asked == "numba" and not installed:
        raise NearsimError("the numba back end is not installed; pip install 'nearsim-db[fast]'")
    return "numba" if installed else "numpy"
