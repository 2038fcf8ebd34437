"""Reading a file, with or without root's rights."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nearsim_db.readers import Fields, Source
from nearsim_db.records import ReadDocument, Reject

Items = list[ReadDocument | Reject]


def read_bytes(tmp_path: Path, content: bytes, name: str = "in.jsonl", fields: Fields | None = None) -> Items:
    """Write a file with this content, and return what the reader yields for it."""
    path = tmp_path / name
    path.write_bytes(content)
    return list(Source([path], fields or Fields()))


@contextmanager
def as_nobody() -> Iterator[None]:
    """Run the block without root's rights, because root can read every file."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)
