"""Copy the records that `dedupe` keeps from the inputs to an output, without changing them if the formats allow it."""

import codecs
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nearsim_db.errors import InputError
from nearsim_db.readers.inputs import Input
from nearsim_db.readers.writers.delimited import DelimitedWriter, lines_of
from nearsim_db.readers.writers.file_format import Encoding, FileFormat, RecordWriter, chosen_encoding
from nearsim_db.readers.writers.opened import JsonLinesWriter, TextLinesWriter, open_writer
from nearsim_db.readers.writers.parquet import ParquetWriter
from nearsim_db.similarity.arrays import Ints

if TYPE_CHECKING:
    from pyarrow import Schema


Item = TypeVar("Item")

_DELIMITED = (FileFormat.CSV, FileFormat.TSV)


def output_encoding(inputs: Sequence[Input], output: Path, format: FileFormat | None) -> Encoding:
    """Return the format of an output: by its suffix, else `format`, else the format of all inputs, else JSON lines.

    CSV that is read from CSV keeps the delimiter, the quotes and the exact text. Raises InputError for an unknown
    suffix, and for lines of text if an input has another format.
    """
    common = {file.format for file in inputs}
    default = (common.pop() if len(common) == 1 else None) or FileFormat.JSONL
    encoding = chosen_encoding(output, format, default)
    if encoding.format is FileFormat.LINES and default is not FileFormat.LINES:
        raise InputError(
            f"{output} cannot be lines of text, as the records have other columns; write JSON lines"
        )
    if inputs and encoding.format is default and default in _DELIMITED:
        return inputs[0].in_its_quotes(encoding)
    return encoding


def open_unique(
    inputs: Sequence[Input], output: Path, encoding: Encoding, *, sweep: bool = True
) -> AbstractContextManager[RecordWriter]:
    """Open the output, with the columns of all inputs; `sweep` is as in `open_output`.

    CSV begins with a byte order mark if the first input is CSV that begins with it.
    """
    if encoding.format is FileFormat.PARQUET:
        return open_writer(output, encoding, (), _schema(inputs), sweep=sweep)
    if encoding.format in (FileFormat.JSONL, FileFormat.JSON, FileFormat.LINES):
        return open_writer(output, encoding, (), sweep=sweep)
    columns = list(dict.fromkeys(name for file in inputs for name in file.columns()))
    header = inputs[0].header() if inputs and inputs[0].format in _DELIMITED else (b"", [])
    is_same = header[1] == columns and inputs[0].delimiter == encoding.delimiter
    if not is_same and header[0].startswith(codecs.BOM_UTF8):
        # The columns differ, so write a new header, which still begins with the byte order mark.
        written = codecs.BOM_UTF8 + lines_of(encoding).line(columns).encode()
        return open_writer(output, encoding, columns, header=written, sweep=sweep)
    return open_writer(output, encoding, columns, header=header[0] if is_same else None, sweep=sweep)


def copy_unique(
    inputs: Sequence[Input], origins: Mapping[int, Ints], writer: RecordWriter, delimiter: str
) -> Iterator[int]:
    """Write the records at some positions of the inputs; after each step, yield the number of records so far.

    `origins` has the ascending positions by number of the input. JSON lines and lines of text are copied byte for byte,
    and so are rows of CSV with the columns and the delimiter of the output. pyarrow copies the rows of Parquet files.
    Raises InputError if an input became shorter.
    """
    done = 0
    for part in sorted(origins):
        for count in _copy(inputs[part], origins[part], writer, delimiter):
            done += count
            yield done


def _copy(source: Input, positions: Ints, writer: RecordWriter, delimiter: str) -> Iterator[int]:
    """Write the records at some positions of one input, and yield the number of records of each step."""
    wanted = iter(positions.tolist())

    if isinstance(writer, ParquetWriter) and source.format is FileFormat.PARQUET:
        yield from _copy_batches(source, wanted, writer)
    elif isinstance(writer, TextLinesWriter) or (
        isinstance(writer, JsonLinesWriter) and source.format is FileFormat.JSONL
    ):
        yield from _copy_lines(source, positions, writer)
    elif (
        isinstance(writer, DelimitedWriter)
        and source.format in _DELIMITED
        and source.delimiter == delimiter
        and tuple(source.header()[1]) == writer.columns
    ):
        for row in _select(source.rows(), wanted, source.path):
            writer.write_row(row)
            yield 1
    else:
        for record in _select(source.records(), wanted, source.path):
            writer.write(record)
            yield 1


def _copy_lines(source: Input, positions: Ints, writer: JsonLinesWriter) -> Iterator[int]:
    done = 0
    for first, lines in source.blocks():
        end = int(positions.searchsorted(first + len(lines)))
        chosen = [lines[position - first] for position in positions[done:end].tolist()]
        written = [line for line in chosen if line is not None]
        writer.write_lines(written)
        done += len(written)
        # A line is missing: it could be read before, but is now longer than the limit.
        if done < end:
            break
        yield len(written)
    if done < len(positions):
        raise _became_shorter(source.path)


def _copy_batches(source: Input, wanted: Iterator[int], writer: ParquetWriter) -> Iterator[int]:
    import pyarrow

    position = next(wanted, None)
    for begin, batch in source.batches():
        rows = []
        while position is not None and position < begin + batch.num_rows:
            rows.append(position - begin)
            position = next(wanted, None)
        if rows:
            writer.write_batch(batch.take(pyarrow.array(rows)))
            yield len(rows)
    if position is not None:
        raise _became_shorter(source.path)


def _select(items: Iterator[tuple[int, Item]], wanted: Iterable[int], path: Path) -> Iterator[Item]:
    """Yield the items at the wanted positions; both iterables are in ascending order."""
    for position in wanted:
        for at, item in items:
            if at == position:
                yield item
                break
        else:
            raise _became_shorter(path)


def _became_shorter(path: Path) -> InputError:
    return InputError(f"{path} became shorter between two readings; run the command again")


def _schema(inputs: Sequence[Input]) -> "Schema":
    """Return a schema with the columns of all inputs. Raises InputError if their types do not fit each other."""
    import pyarrow

    try:
        return pyarrow.unify_schemas([file.schema() for file in inputs], promote_options="permissive")
    except (pyarrow.ArrowException, TypeError) as error:
        raise InputError(f"the inputs have columns of different types: {error}; write JSON lines") from error
