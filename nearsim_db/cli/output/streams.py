"""Write answers and results as a table, JSON or CSV, to standard output or a file."""

import heapq
import io
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import fields, is_dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from nearsim_db.cli.options import Format, is_parquet
from nearsim_db.cli.output import tables, terminal
from nearsim_db.cli.output.layouts import Answer, Layout
from nearsim_db.errors import NearsimError
from nearsim_db.readers.output import json_line, open_output
from nearsim_db.readers.writers.delimited import DelimitedLines
from nearsim_db.readers.writers.file_format import compression_of
from nearsim_db.records import STANDARD_OUTPUT

if TYPE_CHECKING:
    from nearsim_db.cli.options import Rows


def write(
    layout: Layout[Answer],
    answers: Generator[Answer, None, None],
    rows: "Rows",
    *,
    total: int | None = None,
    has_more: bool = False,
    facts: Mapping[str, object] | None = None,
) -> None:
    """Write answers as they arrive; a table on standard output has at most 50 rows by default.

    Unless --quiet is given, a table ends with the numbers of rows and of omitted rows.

    total: the number of all answers, if `answers` are only the first of them. has_more: there are further answers; the
    last line of a table says so, or a line on standard error. facts: are added to a JSON document that has the answers
    under a key.
    """
    format, output, limit, quiet = rows.chosen(), rows.output, rows.limit, rows.quiet
    # Fetch the first answer now: if the index is missing, this raises the error before the output is opened.
    every = chain(list(islice(answers, 1)), answers)
    # A table reads all answers, because it says how many it omits.
    counted = _Counted(every if format is Format.TABLE else islice(every, limit))

    compression = "" if output is None else compression_of(output)
    with (
        closing(answers),
        open_output(output or STANDARD_OUTPUT) as file,
        _compressed(file, compression) as stream,
    ):
        if is_parquet(output):
            _write_parquet(layout, counted, stream)
            written = counted.count
        elif format is Format.TABLE:
            shown = rows.table_limit
            written = _write_table(layout, counted, stream, shown, total, count=not quiet, has_more=has_more)
        elif format is Format.JSON:
            written = _write_document(layout, counted, stream, facts or {})
        else:
            _write_lines(layout, counted, format, stream)
            written = counted.count

    if rows.is_to_file and not quiet:
        terminal.print_info(f"wrote {layout.plural} to {output}: {written:,}")
    if has_more and format is not Format.TABLE and not quiet:
        terminal.print_info(f"there are more {layout.plural}; raise --limit to list them")


def append(
    layout: Layout[Answer],
    answers: Generator[Answer, None, None],
    format: Format,
    output: Path | None,
    limit: int | None,
) -> None:
    """Append each answer to standard output or a file as soon as it arrives, as JSON lines or CSV."""
    with closing(answers), _appending(output) as stream:
        # If the file has content, it has a heading already.
        is_begun = stream.seekable() and stream.tell() > 0
        _write_lines(layout, islice(answers, limit), format, stream, is_begun=is_begun, is_flushed=True)


def _write_lines(
    layout: Layout[Answer],
    answers: Iterable[Answer],
    format: Format,
    stream: BinaryIO,
    *,
    is_begun: bool = False,
    is_flushed: bool = False,
) -> None:
    """Write JSON lines or CSV. CSV gets a heading unless the file `is_begun`."""
    cells = csv_lines(format, stream)
    if format is not Format.JSONL and not is_begun:
        stream.write(cells.line(layout.columns).encode())
    for answer in answers:
        if format is Format.JSONL:
            stream.write(json_row(layout.json_value(answer), stream))
        else:
            stream.write("".join(map(cells.line, layout.csv_rows(answer))).encode())
        if is_flushed:
            stream.flush()


def _compressed(file: BinaryIO, compression: str) -> AbstractContextManager[BinaryIO]:
    if not compression:
        return nullcontext(file)
    from nearsim_db.readers.writers.opened import compressed

    return compressed(file, compression)


def _write_parquet(layout: Layout[Answer], answers: Iterable[Answer], stream: BinaryIO) -> None:
    """Write the same rows and columns as CSV, but with types."""
    from nearsim_db.readers.writers.parquet import ParquetWriter, parquet_schema

    writer = ParquetWriter(stream, parquet_schema(layout.columns, {}))
    try:
        for answer in answers:
            for row in layout.csv_rows(answer):
                writer.write(dict(zip(layout.columns, row, strict=True)))
        writer.close()
    except BaseException:
        writer.abandon()
        raise


@contextmanager
def _appending(path: Path | None) -> Iterator[BinaryIO]:
    if path is None or path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        return
    try:
        with path.open("ab") as stream:
            yield stream
    except OSError as error:
        raise NearsimError(f"{path} cannot be written: {error.strerror or error}") from error


class _Counted(Iterator[Answer]):
    def __init__(self, answers: Iterator[Answer]) -> None:
        self._answers = answers
        self.count = 0

    def __next__(self) -> Answer:
        answer = next(self._answers)
        self.count += 1
        return answer


def _write_document(
    layout: Layout[Answer], answers: _Counted[Answer], stream: BinaryIO, facts: Mapping[str, object]
) -> int:
    stream.write(f'{{"{layout.key}": ['.encode() if layout.key else b"[")
    for answer in answers:
        stream.write(b"\n" if answers.count == 1 else b",\n")
        stream.write(json_row(layout.json_value(answer), stream).rstrip(b"\n"))
    stream.write(b"\n]" if answers.count else b"]")

    if layout.key:
        # The facts follow the array in the same object, so remove their opening brace.
        end = json_row(dict(facts), stream).strip()[1:] if facts else b"}"
        stream.write((b", " if facts else b"") + end)
    stream.write(b"\n")
    return answers.count


def _write_table(
    layout: Layout[Answer],
    answers: _Counted[Answer],
    stream: BinaryIO,
    limit: int | None,
    total: int | None,
    *,
    count: bool,
    has_more: bool,
) -> int:
    shown = _first(layout, answers, limit)
    # Only count the remaining answers.
    for _ in answers:
        pass

    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        left_out: Sequence[str] = ()
        if shown:
            columns, rows = _without_verified(*layout.table(shown))
            left_out = tables.print_fitting(
                columns, rows, optional=layout.optional, shorten=layout.shorten, wrap=layout.wrap, stream=text
            )

        if count:
            text.write(_count(layout, len(shown), total or answers.count, has_more=has_more))
        if count and left_out:
            text.write(f"left out for the width: {', '.join(left_out)}; --format csv has all columns\n")
    finally:
        text.detach()  # without this, closing the wrapper would close the stream
    return len(shown)


def _without_verified(
    columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    """Leave out the column `verified` unless it marks a row as an estimate."""
    at = columns.index("verified") if "verified" in columns else None
    if at is None or any(row[at] is False for row in rows):
        return columns, rows
    return [*columns[:at], *columns[at + 1 :]], [[*row[:at], *row[at + 1 :]] for row in rows]


def _first(layout: Layout[Answer], answers: _Counted[Answer], limit: int | None) -> list[Answer]:
    if layout.order is None:
        return list(islice(answers, limit))
    # nsmallest keeps at most `limit` answers in memory.
    return (
        sorted(answers, key=layout.order) if limit is None else heapq.nsmallest(limit, answers, layout.order)
    )


def _count(layout: Layout[Answer], shown: int, seen: int, *, has_more: bool) -> str:
    if not seen:
        return f"{layout.if_empty or f'no {layout.plural}'}\n"
    if has_more:
        return f"\n{layout.plural}: {shown:,}, and there are more; raise --limit to list them\n"
    omitted = seen - shown
    if not omitted:
        return f"\n{layout.plural}: {seen:,}\n"
    remedy = f"--limit {seen} or --format jsonl" if layout.limits_rows else "--format jsonl"
    return f"\n{layout.plural}: {seen:,}, of which {omitted:,} are not shown; {remedy} shows all\n"


def csv_lines(format: Format, stream: BinaryIO | TextIO) -> DelimitedLines:
    """Return the writer of CSV lines for a format; if the stream is a terminal, control characters are escaped."""
    escape = terminal.visible if stream.isatty() else None
    return DelimitedLines(marked=format is not Format.CSV_EXACT, escape=escape)


def json_row(record: object, stream: BinaryIO) -> bytes:
    """Return a record as a JSON line; if the stream is a terminal, C1 and direction controls are escaped too."""
    line = json_line(record)
    return terminal.escaped_strings(line.decode()).encode() if stream.isatty() else line


def print_document(format: Format, value: object, stream: TextIO | None = None) -> None:
    """Print a mapping, a dataclass or a list of them, on standard output by default.

    In jsonl and csv, each item of a list is a line, and a single value is one line. The columns of csv are the keys, in
    the order in which they first appear; nested values are written as JSON.
    """
    target = stream or sys.stdout
    rows = value if isinstance(value, list) else [value]

    if format is Format.JSONL:
        for row in rows:
            terminal.print_json(row, target, is_indented=False)
    elif format in (Format.CSV, Format.CSV_EXACT):
        mappings = [_mapping(row) for row in rows]
        columns, cells = (
            list(dict.fromkeys(name for row in mappings for name in row)),
            csv_lines(format, target),
        )

        heading = [cells.line(columns)] if columns else []
        target.writelines(
            [*heading, *(cells.line([_cell(row.get(name)) for name in columns]) for row in mappings)]
        )
    else:
        terminal.print_json(value, target)


def _mapping(row: Any) -> Mapping[str, object]:
    return (
        row if isinstance(row, Mapping) else terminal.values_of(row, *(field.name for field in fields(row)))
    )


def _cell(value: object) -> object:
    is_nested = isinstance(value, dict | list | tuple) or is_dataclass(value)
    return terminal.json_text(value) if is_nested else value
