"""Readers: documents from JSON lines, CSV, TSV, text files and folders, compressed or not, and Parquet."""

from nearsim_db.readers.contract import Fields
from nearsim_db.readers.memory import from_documents
from nearsim_db.readers.rejects import RejectWriter, refuse_overwriting_inputs
from nearsim_db.readers.source import Source
from nearsim_db.readers.vector_files import open_vectors
from nearsim_db.readers.vectors import VectorLengthCheck

__all__ = [
    "Fields",
    "RejectWriter",
    "Source",
    "VectorLengthCheck",
    "from_documents",
    "open_vectors",
    "refuse_overwriting_inputs",
]
