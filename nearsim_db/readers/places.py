"""The places where records were read, with their ids, titles, sources and dates, in temporary files."""

import os
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nearsim_db.readers.dates import microseconds_of
from nearsim_db.readers.output import full_disk
from nearsim_db.records import ReadDocument

_ROW = np.dtype(
    [
        ("file", "<i4"),  # index of the file
        ("line", "<i8"),
        ("record", "<i8"),
        ("id", "<i4"),  # bytes of the id
        ("title", "<i4"),  # bytes of the title, -1 if there is none
        ("end", "<i8"),  # where the bytes of the id and the title end
        ("source", "<i4"),  # index of the source, -1 if there is none
        ("published", "<M8[us]"),  # in UTC, NaT if there is no date
    ]
)
_BLOCK_ROWS = 4_096
# The number that stands for NaT.
_NO_DATE = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a record."""

    file: str
    line: int  # the line or row, from 1; 0 if the record is the whole file
    record: int  # the number of the record in the file, from 1


class RecordPlaces:
    """The places and ids of records, which are numbered from 0 in the order in which they are added."""

    def __init__(self) -> None:
        self._ids, self._rows = TemporaryFile(), TemporaryFile()  # noqa: SIM115  closed on exit
        self._files: list[str] = []
        self._sources: dict[str, int] = {}
        self._pending: list[tuple[object, ...]] = []
        self._end = 0
        self._stored = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with full_disk(), self._rows, self._ids:  # closing writes what is in the buffers
            pass

    def add(self, record: ReadDocument, ordinal: int) -> int:
        """Add a record whose number in its file is `ordinal`, and return its number among all records.

        Raises NearsimError if the disk is full.
        """
        # Records of the same file come one after another.
        if not self._files or self._files[-1] != record.file:
            self._files.append(record.file)

        external_id = record.document.external_id.encode()
        title = None if record.document.title is None else record.document.title.encode()
        content = external_id + (title or b"")
        self._end += len(content)
        title_bytes = -1 if title is None else len(title)
        source, published = record.document.source, record.document.published_at
        self._pending.append(
            (
                *(len(self._files) - 1, record.line, ordinal, len(external_id), title_bytes, self._end),
                -1 if source is None else self._sources.setdefault(source, len(self._sources)),
                _NO_DATE if published is None else microseconds_of(published),
            )
        )

        with full_disk():
            self._ids.write(content)
        if len(self._pending) == _BLOCK_ROWS:
            self._flush()
        return self._stored + len(self._pending) - 1

    def find(self, number: int) -> tuple[Place, str, str | None]:
        """Return the place, the id and the title of a record."""
        # os.pread reads only what has been written to the files.
        if self._pending:
            self._flush()
        (row,) = np.frombuffer(
            os.pread(self._rows.fileno(), _ROW.itemsize, _ROW.itemsize * number), _ROW
        ).tolist()
        file, line, record, id_bytes, title_bytes, end, *_ = row
        begin = end - id_bytes - max(0, title_bytes)
        content = os.pread(self._ids.fileno(), end - begin, begin)
        title = None if title_bytes < 0 else content[id_bytes:].decode()
        return Place(self._files[file], line, record), content[:id_bytes].decode(), title

    @property
    def files(self) -> list[str]:
        """The files in the order in which they were read."""
        return self._files

    @property
    def sources(self) -> list[str]:
        """The sources of the records, in the order of their first records."""
        return list(self._sources)

    def columns(self) -> NDArray[np.void]:
        """Return rows of (file, title, source, published), a row for each record.

        `file` and `source` are indexes in `files` and `sources`, -1 if there is no source. `title` is the number of
        bytes of the title, -1 if there is none. `published` is in UTC, NaT if there is no date.
        """
        if self._pending:
            self._flush()
        self._rows.seek(0)
        rows: NDArray[np.void] = np.fromfile(self._rows, _ROW)
        return rows[["file", "title", "source", "published"]]

    @full_disk()
    def _flush(self) -> None:
        self._rows.write(np.array(self._pending, _ROW).tobytes())
        self._stored += len(self._pending)
        self._pending.clear()
        self._rows.flush()
        self._ids.flush()
