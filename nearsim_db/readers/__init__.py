"""Readers: documents from files of many formats, compressed or not, and from folders and patterns of files."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearsim_db.readers.contract import Fields as Fields
    from nearsim_db.readers.contract import Reading as Reading
    from nearsim_db.readers.memory import from_documents as from_documents
    from nearsim_db.readers.rejects import RejectWriter as RejectWriter
    from nearsim_db.readers.rejects import refuse_overwriting_inputs as refuse_overwriting_inputs
    from nearsim_db.readers.source import Source as Source
    from nearsim_db.readers.vector_files import open_vectors as open_vectors
    from nearsim_db.readers.vectors import VectorLengthCheck as VectorLengthCheck

_MODULES = {
    "Fields": "contract",
    "Reading": "contract",
    "RejectWriter": "rejects",
    "Source": "source",
    "VectorLengthCheck": "vectors",
    "from_documents": "memory",
    "open_vectors": "vector_files",
    "refuse_overwriting_inputs": "rejects",
}


def __getattr__(name: str) -> object:
    """Import a reader on first access, because its modules load NumPy, which writing output files does not need."""
    if name in _MODULES:
        return getattr(import_module(f"nearsim_db.readers.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
