"""From files to documents: JSON lines, CSV and TSV, text files and folders of them, compressed or not."""

from nearsim_db.readers.contract import Fields
from nearsim_db.readers.given import from_documents
from nearsim_db.readers.rejects import RejectWriter, refuse_inputs
from nearsim_db.readers.source import Source

__all__ = ["Fields", "RejectWriter", "Source", "from_documents", "refuse_inputs"]
