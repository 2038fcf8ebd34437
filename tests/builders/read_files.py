"""Reading the content of a file."""

from pathlib import Path

from nearsim_db.readers import Fields, Source
from nearsim_db.records import ReadDocument, Reject

Items = list[ReadDocument | Reject]


def read_bytes(tmp_path: Path, content: bytes, name: str = "in.jsonl", fields: Fields | None = None) -> Items:
    """Write a file, and return what is read of it."""
    path = tmp_path / name
    path.write_bytes(content)
    return list(Source([path], fields or Fields()))
