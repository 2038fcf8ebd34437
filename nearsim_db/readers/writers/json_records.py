"""JSON lines, and a JSON array with one record per line."""

from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

import orjson

from nearsim_db.readers.values import encodable
from nearsim_db.readers.writers.file_format import RecordWriter

Escape = Callable[[str], str]


class JsonLinesWriter(RecordWriter):
    """One object per line; `escape` is applied to each line, for a terminal."""

    def __init__(self, stream: BinaryIO, columns: Sequence[str] = (), escape: Escape | None = None) -> None:
        super().__init__(stream, columns)
        self._escape = escape

    def write(self, record: Mapping[str, object]) -> None:
        self.write_line(orjson.dumps(encodable(dict(record))))

    def write_line(self, line: bytes) -> None:
        """Write an object that is JSON already, without a line end."""
        self.stream.write((self._escape(line.decode()).encode() if self._escape else line) + b"\n")

    def write_lines(self, lines: Sequence[bytes]) -> None:
        """Write several such objects."""
        if self._escape is None:
            self.stream.write(b"".join([line + b"\n" for line in lines]))
        else:
            for line in lines:
                self.write_line(line)


class JsonArrayWriter(JsonLinesWriter):
    """One array of objects, each on a line."""

    def __init__(self, stream: BinaryIO, columns: Sequence[str] = (), escape: Escape | None = None) -> None:
        super().__init__(stream, columns, escape)
        self._is_first = True

    def write_line(self, line: bytes) -> None:
        """Write an object that is JSON already, with the separator before it."""
        self.stream.write(b"[\n" if self._is_first else b",\n")
        self._is_first = False
        self.stream.write(self._escape(line.decode()).encode() if self._escape else line)

    def write_lines(self, lines: Sequence[bytes]) -> None:
        """Write several such objects, without the spaces around them."""
        for line in lines:
            self.write_line(line.strip())

    def close(self) -> None:
        self.stream.write(b"[]\n" if self._is_first else b"\n]\n")
