"""Readers: documents from JSON lines, CSV, TSV, text files and folders, compressed or not, and Parquet."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearsim_db.readers.contract import Fields, Reading
    from nearsim_db.readers.memory import from_documents
    from nearsim_db.readers.rejects import RejectWriter, refuse_overwriting_inputs
    from nearsim_db.readers.source import Source
    from nearsim_db.readers.vector_files import open_vectors
    from nearsim_db.readers.vectors import VectorLengthCheck

__all__ = [
    "Fields",
    "Reading",
    "RejectWriter",
    "Source",
    "VectorLengthCheck",
    "from_documents",
    "open_vectors",
    "refuse_overwriting_inputs",
]

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
    """Import a reader on first access: its modules need NumPy, writing output files does not."""
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f"nearsim_db.readers.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
