"""Opening a writer on an output file."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from nearsim_db.errors import InputError
from nearsim_db.readers.output import open_output
from nearsim_db.readers.writers.compressed import compressed
from nearsim_db.readers.writers.contract import RecordWriter
from nearsim_db.readers.writers.delimited import DelimitedLines, DelimitedWriter
from nearsim_db.readers.writers.file_format import Encoding, FileFormat
from nearsim_db.readers.writers.json_records import JsonArrayWriter, JsonLinesWriter

if TYPE_CHECKING:
    from pyarrow import Schema

Escape = Callable[[str], str]
_JSON = {FileFormat.JSONL: JsonLinesWriter, FileFormat.JSON: JsonArrayWriter}


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
) -> Iterator[RecordWriter]:
    """Open a file as `open_output` does, and complete it at the end of the block.

    `columns` are for CSV, where `header` is their line if it is encoded already; `schema` is for Parquet. The escapes
    are applied to cells and lines of JSON on a terminal.
    Raises InputError for Parquet to a terminal.
    """
    with open_output(output) as stream, compressed(stream, encoding.compression) as target:
        on_terminal = stream.isatty()
        if encoding.format is FileFormat.PARQUET:
            writer = _parquet(target, schema, on_terminal=on_terminal)
        elif encoding.format in _JSON:
            writer = _JSON[encoding.format](target, columns, escape_json if on_terminal else None)
        else:
            lines = DelimitedLines(
                encoding.delimiter, marked=not encoding.exact, escape=escape_cell if on_terminal else None
            )
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
