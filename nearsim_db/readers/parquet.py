"""Parquet: one document per row, read in batches with pyarrow, which is imported only for such files."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearsim_db.errors import InputError
from nearsim_db.messages import count_of
from nearsim_db.readers.arrow_values import (
    BYTES_AT_ONCE,
    ROWS_AT_ONCE,
    VALUE_BYTES,
    Unreadable,
    as_json,
    decoded_size,
    slices_of,
    values_of,
)
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import DocumentMaker, check_names
from nearsim_db.readers.input_file import MAX_POINTER_BYTES, MAX_RECORD_BYTES, InputFile, refuse_pointer
from nearsim_db.records import ReadDocument, Reject

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetFile

_LONG_BYTES = BYTES_AT_ONCE // ROWS_AT_ONCE
# The maximum number of values in a row group, if the file stores less than a byte for each of them.
_MAX_GROUP_VALUES = 100_000_000


def refuse_without_pyarrow(path: Path) -> None:
    """Raise InputError if pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"reading {path} requires the package pyarrow; pip install 'nearsim-db[parquet]'"
        ) from error


def open_parquet(path: Path) -> "ParquetFile":
    """Open a Parquet file, to be closed by the caller.

    Raises InputError if it is not a Parquet file, or has duplicate column names.
    """
    refuse_without_pyarrow(path)
    import pyarrow.parquet

    if not path.is_file():
        raise InputError(
            f"{path} is not a regular file; Parquet cannot be read from a pipe: save it to a file first"
        )
    try:
        with path.open("rb") as file:
            refuse_pointer(str(path), file.read(MAX_POINTER_BYTES))
        opened = pyarrow.parquet.ParquetFile(path)
        names = opened.schema_arrow.names
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        raise InputError(f"cannot read {path} as Parquet: {Unreadable(error).reason}") from error
    try:
        check_names(names, str(path))
    except InputError:
        opened.close()
        raise
    return opened


def rows_of(
    opened: "ParquetFile", path: Path, columns: list[str] | None = None
) -> Iterator[dict[str, Any] | None]:
    """Yield rows as Python values, with NumPy arrays for lists of plain numbers; a value may be `Unreadable`.

    A row that exceeds the limit of a record is not decoded; None is yielded instead. Raises InputError if the file
    cannot be read further.
    """
    return rows_of_batches(batches_of(opened, path, columns), path)


def batches_of(
    opened: "ParquetFile", path: Path, columns: list[str] | None = None
) -> Iterator["RecordBatch"]:
    """Yield batches of at most 64 rows and some 64 MB, unless a single row is larger.

    A few bytes of a file can repeat a long text in each row. Such columns are read as dictionaries, so that the text is
    in memory once. Raises InputError if the metadata of a row group claims too many values.
    """
    import pyarrow.parquet

    texts, checked = _texts_with_dictionary(opened, path)
    with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as as_dictionaries:
        for number in range(opened.num_row_groups):
            # Earlier row groups were checked together with their dictionaries.
            if number >= checked:
                _check_columns(opened, number, path)
            group = opened.metadata.row_group(number)
            values = _values_of_lists(group)
            _check_group(group, values, f"row group {number + 1} of {path}")
            size = max(1, group.total_byte_size, VALUE_BYTES * values)
            source = as_dictionaries if texts and _has_long_text(as_dictionaries, number, texts) else opened
            rows = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE * group.num_rows // size))
            for batch in source.iter_batches(rows, row_groups=[number], columns=columns):
                yield from slices_of(batch)


def _check_columns(opened: "ParquetFile", number: int, path: Path) -> None:
    """Raise OSError if a row group has a damaged column, which is found by reading it.

    pyarrow ends the process when the metadata of a damaged column are requested, but not when the column is read.
    Columns of lists are not read, because a single row may be too large.
    """
    columns = map(opened.schema.column, range(len(opened.schema)))
    plain = [column.path for column in columns if column.max_repetition_level == 0]
    _check_group(opened.metadata.row_group(number), 0, f"row group {number + 1} of {path}")
    if plain:
        next(opened.iter_batches(1, row_groups=[number], columns=plain), None)


def _values_of_lists(group: Any) -> int:
    """Return the number of values in those columns of a row group that have more values than rows."""
    counts = [group.column(at).num_values for at in range(group.num_columns)]
    return sum(count for count in counts if count > group.num_rows)


def _check_group(group: Any, values: int, name: str) -> None:
    """Raise InputError if the average row exceeds the limit of a record, or if values are repeated in large numbers.

    Reading a row decodes all its values, however small the batch is.
    """
    is_large = max(group.total_byte_size, VALUE_BYTES * values) > MAX_RECORD_BYTES * max(1, group.num_rows)
    if is_large or (values > _MAX_GROUP_VALUES and group.total_byte_size < values):
        rows = count_of(group.num_rows, "row")
        if VALUE_BYTES * values > group.total_byte_size:
            raise InputError(
                f"{name} has {values:,} values in lists in {rows}, which is more than nearsim decodes; write it with "
                "fewer values in a row group"
            )
        raise InputError(
            f"{name} has {group.total_byte_size:,} bytes in {rows}, which is more than nearsim decodes; write it with "
            f"at most {MAX_RECORD_BYTES:,} bytes per row"
        )


def _texts_with_dictionary(opened: "ParquetFile", path: Path) -> tuple[list[str], int]:
    """Return the columns of texts that have a dictionary, and the number of row groups before the first damaged one."""
    # Damaged metadata may name columns that do not exist.
    existing = {opened.schema.column(at).path for at in range(len(opened.schema))}
    with_dictionary, checked = set[str](), 0
    for number in range(opened.num_row_groups):
        try:
            _check_columns(opened, number, path)
        except (OSError, InputError):
            break  # the error is raised again when this row group is read
        group = opened.metadata.row_group(number)
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page:
                with_dictionary.add(chunk.path_in_schema)
        checked += 1
    return sorted(with_dictionary & existing), checked


def _has_long_text(opened: "ParquetFile", group: int, columns: list[str]) -> bool:
    """Whether the dictionary of a column contains a text of more than a megabyte.

    Reading the first row also reads the dictionaries.
    """
    import pyarrow
    from pyarrow import compute

    first = next(opened.iter_batches(1, row_groups=[group], columns=columns), None)
    dictionaries = (
        []
        if first is None
        else [dictionary for column in first.columns for dictionary in _dictionaries(column)]
    )
    lengths = [
        compute.max(compute.binary_length(dictionary.cast(pyarrow.large_binary()))).as_py()
        for dictionary in dictionaries
    ]
    return any(length is not None and length > _LONG_BYTES for length in lengths)


def _dictionaries(array: Any) -> Iterator[Any]:
    from pyarrow import types

    if types.is_dictionary(array.type):
        yield array.dictionary
    elif types.is_nested(array.type):
        for part in array.flatten() if types.is_struct(array.type) else [array.values]:
            yield from _dictionaries(part)


def rows_of_batches(batches: Iterable["RecordBatch"], path: Path) -> Iterator[dict[str, Any] | None]:
    """Yield the rows of batches in the form of `rows_of`."""
    import pyarrow

    done = 0
    try:
        for batch in batches:
            names = batch.schema.names
            if batch.num_rows == 1 and decoded_size(batch) > MAX_RECORD_BYTES:
                yield None
                done += 1
                continue
            for row in zip(*map(values_of, batch.columns), strict=True):
                yield dict(zip(names, row, strict=True))
            done += batch.num_rows
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        raise InputError(
            f"{path} is damaged ({Unreadable(error).reason}), after {done:,} complete rows; "
            "repair or download the file again and rerun the command"
        ) from error


def read_parquet(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Read the documents of a Parquet file; the line of a document is the number of its row, from 1.

    Dates and times become texts in ISO 8601; decimals, UUIDs and bytes become strings; maps with string keys become
    objects; and NaN in an attribute becomes null. Raises InputError for a file without the required columns.
    """
    with closing(open_parquet(file.path)) as opened:
        before, total = file.progress.bytes_read, max(1, opened.metadata.num_rows)
        size = file.path.stat().st_size
        rows = rows_of(opened, file.path)
        for number, made in enumerate(documents_of(file, fields, opened.schema_arrow.names, rows), 1):
            yield made
            file.progress.bytes_read = before + size * number // total


def documents_of(
    file: InputFile, fields: Fields, names: list[str], rows: Iterable[dict[str, Any] | None]
) -> Iterator[ReadDocument | Reject]:
    """Make documents from rows whose columns are `names`. Raises InputError if required columns are missing."""
    maker = DocumentMaker(file.name, fields, file.split)
    maker.check_columns(names)
    for number, row in enumerate(rows, 1):
        if row is None or sum(len(value) for value in row.values() if isinstance(value, str)) > file.limit:
            yield Reject(file.name, number, file.too_long)
        else:
            yield _made(maker, file.name, row, fields.vector, number)


def _made(
    maker: DocumentMaker, file: str, row: Mapping[str, object], vector: str, number: int
) -> ReadDocument | Reject:
    for name, value in row.items():
        if isinstance(value, Unreadable):
            return Reject(file, number, f"cannot read '{name}': {value.reason}")
    return maker.make(
        {name: value if name == vector else as_json(value) for name, value in row.items()}, number
    )
