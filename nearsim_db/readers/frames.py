"""The rows of data frames and tables with the Arrow C stream interface, such as those of pandas and polars."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from nearsim_db.errors import InputError
from nearsim_db.readers.arrow_values import Unreadable, column_names, slices_of, values_of
from nearsim_db.readers.document_maker import check_names


class Frame(Protocol):
    """A table with the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


Rows = Iterable[object] | Frame

_ORIGIN = "the data frame"
# The name that pyarrow gives to the index of a data frame of pandas.
_UNNAMED_INDEX = re.compile(r"__index_level_[0-9]+__")


def rows_of_frame(frame: Any) -> Iterator[dict[str, Any]] | None:
    """Return the rows of a frame as values by column; a value that Python cannot represent is `Unreadable`.

    Returns None for a series, which has no column names. A frame with a column of mixed types, which Arrow does not
    have, is read row by row. Raises InputError if pyarrow is not installed, or if the stream is damaged.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise InputError(
            "reading a data frame requires the package pyarrow; pip install 'nearsim-db[parquet]'"
        ) from error

    # A series has no column names: its values are the rows.
    if len(getattr(frame, "shape", (0, 0))) == 1 or isinstance(frame, pyarrow.ChunkedArray):
        return None
    # The stream of polars has the addresses of Python objects instead of their values.
    if "Object" in map(str, getattr(frame, "dtypes", ())):
        return _rows_of_python(frame)
    try:
        stream = pyarrow.RecordBatchReader.from_stream(frame)
    except Exception as error:  # every library raises its own exceptions
        rows = _rows_of_python(frame)
        if rows is None:
            raise InputError(f"cannot read the data frame: {Unreadable(error).reason}") from error
        return rows
    return _rows_of_stream(stream)


def _rows_of_stream(stream: Any) -> Iterator[dict[str, Any]]:
    import pyarrow

    names = [name for name in column_names(stream.schema, _ORIGIN) if not _UNNAMED_INDEX.fullmatch(name)]
    try:
        for batch in stream:
            for part in slices_of(batch):
                columns = [values_of(part.column(name)) for name in names]
                yield from (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        raise InputError(f"cannot read the data frame: {Unreadable(error).reason}") from error


def _rows_of_python(frame: Any) -> Iterator[dict[str, Any]] | None:
    if hasattr(frame, "itertuples"):
        # A named index becomes a column, an unnamed index is dropped.
        frame = frame.reset_index(drop=frame.index.names == [None])
        names = list(map(str, frame.columns))
        check_names(names, _ORIGIN)
        return (dict(zip(names, row, strict=True)) for row in frame.itertuples(index=False, name=None))
    rows: Iterator[dict[str, Any]] | None = (
        frame.iter_rows(named=True) if hasattr(frame, "iter_rows") else None
    )
    return rows
