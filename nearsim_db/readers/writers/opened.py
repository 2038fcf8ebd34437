"""Opening a writer on an output file, compressed if its name says so; JSON lines, JSON arrays and lines of text."""

from bz2 import BZ2File
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from lzma import LZMAFile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import orjson
import zstandard

from nearsim_db.errors import InputError
from nearsim_db.readers.output import open_output
from nearsim_db.readers.values import encodable
from nearsim_db.readers.writers.delimited import DelimitedWriter, lines_of
from nearsim_db.readers.writers.file_format import Encoding, Escape, FileFormat, RecordWriter

if TYPE_CHECKING:
    from pyarrow import Schema


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
            self.stream.write(b"\n".join([*lines, b""]))
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


class TextLinesWriter(JsonLinesWriter):
    """One text per line; a record has no other column."""

    def write(self, record: Mapping[str, object]) -> None:
        (text,) = record.values()
        self.write_line(str(text).encode())


_BY_LINE: dict[FileFormat, type[JsonLinesWriter]] = {
    FileFormat.JSONL: JsonLinesWriter,
    FileFormat.JSON: JsonArrayWriter,
    FileFormat.LINES: TextLinesWriter,
}


@contextmanager
def open_writer(
    output: Path,
    encoding: Encoding,
    columns: Sequence[str],
    schema: "Schema | None" = None,
    *,
    header: bytes | None = None,
    escape_cell: Escape | None = None,
    escape_json: Escape | None = None,
    sweep: bool = True,
) -> Iterator[RecordWriter]:
    """Open a file as `open_output` does, and complete it at the end of the block.

    `columns` are for CSV, where `header` is their line if it is encoded already; `schema` is for Parquet. The escapes
    are applied to cells and lines of JSON on a terminal.
    Raises InputError for Parquet to a terminal.
    """
    with open_output(output, sweep=sweep) as stream, compressed(stream, encoding.compression) as target:
        on_terminal = stream.isatty()
        if encoding.format is FileFormat.PARQUET:
            writer = _parquet(target, schema, on_terminal=on_terminal)
        elif encoding.format in _BY_LINE:
            writer = _BY_LINE[encoding.format](target, columns, escape_json if on_terminal else None)
        else:
            lines = lines_of(encoding, escape_cell if on_terminal else None)
            writer = DelimitedWriter(target, columns, lines, header)

        try:
            yield writer
            writer.close()
        except BaseException:
            writer.abandon()
            raise


def _parquet(stream: BinaryIO, schema: "Schema | None", *, on_terminal: bool) -> RecordWriter:
    from nearsim_db.readers.writers.parquet import ParquetWriter

    if on_terminal:
        raise InputError("Parquet cannot be written to a terminal; name a file with --output")
    if schema is None:
        raise ValueError("Parquet needs a schema")
    return ParquetWriter(stream, schema)


@contextmanager
def compressed(stream: BinaryIO, compression: str) -> Iterator[BinaryIO]:
    """Return a stream that compresses into another, which is left open; compression is one of COMPRESSIONS or ''."""
    match compression:
        case ".gz":
            open_gzip, level = _gzip()

            # Without a time in its header, equal content gives equal files.
            with open_gzip(fileobj=stream, mode="wb", compresslevel=level, mtime=0, filename="") as packed:
                yield cast(BinaryIO, packed)
        case ".zst":
            with zstandard.ZstdCompressor().stream_writer(stream, closefd=False) as packed:
                yield cast(BinaryIO, packed)
        case ".bz2":
            with BZ2File(stream, "wb") as packed:
                yield cast(BinaryIO, packed)
        case ".xz":
            with LZMAFile(stream, "wb") as packed:
                yield cast(BinaryIO, packed)
        case _:
            yield stream


def _gzip() -> tuple[Callable[..., AbstractContextManager[object]], int]:
    """Return ISA-L's compression, else Python's, and the level: files of ISA-L are 8 % larger at 7 % of the time."""
    try:
        from isal.igzip import IGzipFile
    except ImportError:
        from gzip import GzipFile

        return GzipFile, 6
    return IGzipFile, 3
