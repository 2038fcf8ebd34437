"""Open the writer for an output file in its format and compression, and the writers of JSON and lines of text."""

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
    """Writes an object on each line; `escape` is applied to each line that a terminal shows."""

    def __init__(self, stream: BinaryIO, columns: Sequence[str] = (), escape: Escape | None = None) -> None:
        super().__init__(stream, columns)
        self._escape = escape

    def write(self, record: Mapping[str, object]) -> None:
        self.write_line(orjson.dumps(encodable(dict(record))))

    def write_line(self, line: bytes) -> None:
        """Write an object that is JSON already and has no line end."""
        self.stream.write((self._escape(line.decode()).encode() if self._escape else line) + b"\n")

    def write_lines(self, lines: Sequence[bytes]) -> None:
        """Write several objects that are JSON already."""
        if self._escape is None:
            self.stream.write(b"\n".join([*lines, b""]))
        else:
            for line in lines:
                self.write_line(line)


class JsonArrayWriter(JsonLinesWriter):
    """Writes an array of objects, with each object on its own line."""

    def __init__(self, stream: BinaryIO, columns: Sequence[str] = (), escape: Escape | None = None) -> None:
        super().__init__(stream, columns, escape)
        self._is_first = True

    def write_line(self, line: bytes) -> None:
        """Write an object that is JSON already, after a separator."""
        self.stream.write(b"[\n" if self._is_first else b",\n")
        self._is_first = False
        self.stream.write(self._escape(line.decode()).encode() if self._escape else line)

    def write_lines(self, lines: Sequence[bytes]) -> None:
        """Write several objects that are JSON already, without the spaces around them."""
        for line in lines:
            self.write_line(line.strip())

    def close(self) -> None:
        self.stream.write(b"[]\n" if self._is_first else b"\n]\n")


class TextLinesWriter(JsonLinesWriter):
    """Writes a text on each line; a record has only this column."""

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
    """Open a writer on `open_output(output)`, and complete the output at the end of the block.

    `columns` are the columns of CSV, and `header` is their line if it is encoded already; `schema` is for Parquet. The
    escapes are applied to cells and to lines of JSON if a terminal shows them. Raises InputError if Parquet would be
    written to a terminal.
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
    """Yield a stream that writes its compressed content to `stream`, which is left open.

    `compression` is one of COMPRESSIONS, or empty to write the content uncompressed.
    """
    match compression:
        case ".gz":
            open_gzip, level = _gzip()

            # The header has no time, so that equal content gives equal files.
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
    """Return ISA-L's compression if it is installed, otherwise Python's, and the level.

    At these levels, ISA-L takes 7 % of the time, and its files are 8 % larger.
    """
    try:
        from isal.igzip import IGzipFile
    except ImportError:
        from gzip import GzipFile

        return GzipFile, 6
    return IGzipFile, 3
