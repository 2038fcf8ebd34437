"""Inputs that are read again to write some of their records unchanged: as lines, rows, batches or records.

Standard input and pipes are copied to files first.
"""

import codecs
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from nearsim_db.errors import InputError
from nearsim_db.readers.arrow import TABLES, find_tables, open_arrow
from nearsim_db.readers.arrow_values import as_json
from nearsim_db.readers.delimited import numbered_columns, raw_rows
from nearsim_db.readers.folder import LeftOut
from nearsim_db.readers.input_file import STANDARD_INPUT, Readable, ReadProgress, pieces_of
from nearsim_db.readers.json_array import begin, elements
from nearsim_db.readers.jsonl import parse_line
from nearsim_db.readers.leftovers import temporary_copies
from nearsim_db.readers.parquet import batches_of, open_parquet, rows_of_batches
from nearsim_db.readers.paths import LINES
from nearsim_db.readers.rows import ROW_READERS
from nearsim_db.readers.source import JSON, STANDARD_INPUT_DEVICE, Source
from nearsim_db.readers.writers.file_format import DELIMITERS, SUFFIXES, Encoding, FileFormat
from nearsim_db.readers.writers.parquet import inferred_schema
from nearsim_db.records import Progress, ReadDocument, silent
from nearsim_db.similarity.text.clean import clean

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema


class Input:
    """A path of a source, which can be read any number of times.

    `format` is the format in which its records can be written; it is None for texts, spreadsheets and mail, which are
    never written. The position of a record is its number from 0 among all records that the source reads, rejected ones
    included. If `is_by_line` is true, the position is the number of the line, from 1.
    """

    def __init__(self, source: Source, path: Path) -> None:
        self._source = source
        self.path = path
        self._type = source.type_of(path)
        self._tables: list[Path | LeftOut] = []
        if not self._type:
            self._tables = list(find_tables(path, follow_links=source.reading.follow_links))
        elif self._type in TABLES:
            self._tables = [path]
        self._file = replace(source.file(path), progress=ReadProgress())
        self.format: FileFormat | None = self._format()

    def _format(self) -> FileFormat | None:
        if self._tables:
            return FileFormat.PARQUET
        if self._type == JSON:
            return FileFormat.JSON if begin(self._file)[0] else FileFormat.JSONL
        if self._type == LINES:
            return FileFormat.LINES
        return SUFFIXES.get(self._type)

    @property
    def has_columns(self) -> bool:
        """Whether the records have columns, although their format is not written: a spreadsheet, mail and others."""
        return self._type in ROW_READERS

    @property
    def is_by_line(self) -> bool:
        """Whether each line is a record, as in JSON lines and in lines of text."""
        return self.format in (FileFormat.JSONL, FileFormat.LINES)

    @property
    def delimiter(self) -> str:
        """The character between the columns of CSV or TSV."""
        return self._file.delimiter or DELIMITERS[SUFFIXES[self._type]]

    def in_its_quotes(self, encoding: Encoding) -> Encoding:
        """Return an encoding of CSV with the delimiter, the quotes and the escape character of the file."""
        return replace(
            encoding,
            delimiter=self.delimiter,
            exact=True,
            quote=self._file.quote,
            escape_character=self._file.escape,
        )

    def blocks(self) -> Iterator[tuple[int, list[bytes | None]]]:
        """Yield lists of lines, for a file whose lines are records; each list comes with the number of its first line.

        Lines have no line ends. A line that exceeds the limit is None.
        """
        return self._file.blocks()

    def record_of(self, line: bytes) -> Mapping[str, object]:
        """Return the record of a line; if the line is unusable, the record has no columns."""
        if self.format is FileFormat.LINES:
            text = line.removesuffix(b"\r").decode("utf-8", "surrogateescape")
            return _cleaned_record({self._source.fields.body or "text": text})
        return _cleaned_record(parse_line(line, self._file, "")[0])

    def header(self) -> tuple[bytes, list[str]]:
        """Return the header of a CSV file as bytes, including a byte order mark, and as names.

        The bytes are empty if the file has no header.
        """
        with closing(raw_rows(self._file, self.delimiter)) as rows:
            raw, cells = next(rows, (b"", []))
        if not self._file.has_header:
            return b"", numbered_columns(cells or [])
        return (codecs.BOM_UTF8 + raw if self._file.has_mark() else raw), cells or []

    def rows(self) -> Iterator[tuple[int, bytes]]:
        """Yield the rows of a CSV file as bytes, with their line ends, and their positions."""
        rows = raw_rows(self._file, self.delimiter)
        if self._file.has_header:
            next(rows, None)
        return ((position, raw) for position, (raw, _) in enumerate(rows))

    def columns(self) -> list[str]:
        """Return the names of all columns, in order."""
        if self.format in DELIMITERS:
            return self.header()[1]
        if self.format is FileFormat.PARQUET:
            return list(self.schema().names)
        if self.format is None and not self.has_columns:
            return ["id", "text"]
        return list(dict.fromkeys(name for _, record in self.records() for name in record))

    def schema(self) -> "Schema":
        """Return the schema of tables, which has the columns of all of them, or for other formats one that records fit.

        Raises InputError if the same column has different types in several tables.
        """
        import pyarrow

        if self.has_columns or self.format in (FileFormat.JSONL, FileFormat.JSON, FileFormat.LINES):
            return inferred_schema(record for _, record in self.records())
        if self.format is not FileFormat.PARQUET:
            return pyarrow.schema([(name, pyarrow.string()) for name in self.columns()])
        try:
            return pyarrow.unify_schemas(list(self._schemas()), promote_options="permissive")
        except (pyarrow.ArrowException, TypeError) as error:
            raise InputError(f"the files of {self.path} have columns of different types: {error}") from error

    def _schemas(self) -> Iterator["Schema"]:
        for table in self._tables:
            if isinstance(table, Path) and table.suffix.lower() == ".arrow":
                with open_arrow(table) as (schema, _):
                    yield schema
            elif isinstance(table, Path):
                with closing(open_parquet(table)) as opened:
                    yield opened.schema_arrow

    def batches(self) -> Iterator[tuple[int, "RecordBatch"]]:
        """Yield the rows of tables in batches, each with the position of its first row."""
        position = 0
        for table in self._tables:
            if isinstance(table, LeftOut):
                # Reading the source yields a reject for this file, which has a position too.
                position += 1
                continue
            for batch in _batches_of(table):
                yield position, batch
                position += batch.num_rows

    def files(self) -> Iterator[tuple["Input", int, int | None]]:
        """Yield the files, each with the position of its first record and the position after its last record.

        The last position is None if the input is a single file. Raises InputError for inputs that are not written.
        """
        if self.has_columns:
            raise InputError(
                f"{self.path}: files of its format are not written; name an output file, not a folder"
            )
        if self.format is None:
            raise InputError(
                f"{self.path} is text, without records in its files; name an output file, not a folder"
            )

        if self._type:
            yield self, 0, None
            return

        # In a folder of tables, positions continue from file to file.
        position = 0
        for table in self._tables:
            count = 1 if isinstance(table, LeftOut) else _count_rows(table)
            if isinstance(table, Path):
                yield Input(self._source, table), position, position + count
            position += count

    def records(self) -> Iterator[tuple[int, Mapping[str, object]]]:
        """Yield the records as JSON values by column, with their positions; an unusable record has no columns."""
        match self.format:
            case FileFormat.JSONL | FileFormat.LINES:
                for number, line in self._file.lines():
                    if line is not None:
                        yield number, self.record_of(line)
            case FileFormat.JSON:
                body = self._source.fields.body or "text"
                for position, (_, value) in enumerate(elements(begin(self._file)[1])):
                    yield position, _cleaned_record({body: value} if isinstance(value, str) else value)
            case FileFormat.CSV | FileFormat.TSV:
                _, names = self.header()
                rows = raw_rows(self._file, self.delimiter)
                if self._file.has_header:
                    next(rows, None)

                for position, (_, cells) in enumerate(rows):
                    # A rejected row may have a different number of cells.
                    yield position, _cleaned_record(dict(zip(names, cells or [], strict=False)))
            case FileFormat.PARQUET:
                for position, batch in self.batches():
                    for at, row in enumerate(rows_of_batches([batch], self.path), position):
                        yield (
                            at,
                            _cleaned_record({name: as_json(value) for name, value in (row or {}).items()}),
                        )
            case _ if self.has_columns:
                for position, (_, values) in enumerate(ROW_READERS[self._type](self._file)):
                    yield position, _cleaned_record(values)
            case _:
                for position, record in enumerate(self._source.read(self.path)):
                    if isinstance(record, ReadDocument):
                        yield position, {"id": record.document.external_id, "text": record.document.body}


def _batches_of(path: Path) -> Iterator["RecordBatch"]:
    if path.suffix.lower() == ".arrow":
        with open_arrow(path) as (_, batches):
            yield from batches
    else:
        with closing(open_parquet(path)) as opened:
            yield from batches_of(opened, path)


def _count_rows(path: Path) -> int:
    if path.suffix.lower() == ".arrow":
        return sum(batch.num_rows for batch in _batches_of(path))
    with closing(open_parquet(path)) as opened:
        return int(opened.metadata.num_rows)


def _cleaned_record(value: object) -> Mapping[str, object]:
    cleaned = _cleaned(value)
    return cleaned if isinstance(cleaned, dict) else {}


def _cleaned(value: object) -> object:
    """Replace characters that are not valid in UTF-8, as is done in documents."""
    if isinstance(value, str):
        return clean(value)[0]
    if isinstance(value, dict):
        return {clean(name)[0]: _cleaned(item) for name, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, list) else value


_PIECE_BYTES = 1 << 20


@contextmanager
def readable_twice(
    paths: Sequence[Path], suffix: str | None, progress: Progress = silent
) -> Iterator[list[Path]]:
    """Return the paths, with temporary copies in place of standard input and pipes; the block's end deletes the copies.

    A copy has the name of its pipe. If the name has no suffix, `suffix` is added or, if it is None, .json, under which
    JSON lines are read too. Raises InputError if a copy cannot be written.
    """
    if not any(map(_is_stream, paths)):
        yield list(paths)
        return
    with temporary_copies() as folder:
        yield [
            _copied(path, folder / str(at), suffix or JSON, progress) if _is_stream(path) else path
            for at, path in enumerate(paths)
        ]


def _is_stream(path: Path) -> bool:
    return path in (STANDARD_INPUT, STANDARD_INPUT_DEVICE) or path.is_fifo()


def _copied(path: Path, folder: Path, suffix: str, progress: Progress) -> Path:
    is_standard = path in (STANDARD_INPUT, STANDARD_INPUT_DEVICE)
    name = "standard-input" if is_standard else path.name
    copy = folder / (name if Path(name).suffix else f"{name}{suffix}")

    try:
        folder.mkdir()
        with copy.open("wb") as target:
            if is_standard:
                _copy(cast(Readable, sys.stdin.buffer), target, progress)
            else:
                with path.open("rb") as stream:
                    _copy(stream, target, progress)
    except OSError as error:
        raise InputError(
            f"cannot copy {path} to {folder}: {error.strerror or error}; set TMPDIR to a folder with room"
        ) from error
    return copy


def _copy(stream: Readable, target: BinaryIO, progress: Progress) -> None:
    done = 0
    for piece in pieces_of(stream, _PIECE_BYTES):
        target.write(piece)
        done += len(piece)
        progress("spool", done // 1_000_000, None)
