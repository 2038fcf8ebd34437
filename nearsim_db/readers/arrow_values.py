"""Convert Arrow columns to Python values and to JSON, and estimate their size in memory before they are decoded.

A few bytes of a file can represent any number of values: compression, dictionaries, runs and views repeat them. So
batches are cut into slices of limited size.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError
from nearsim_db.readers.document_maker import check_names
from nearsim_db.readers.input_file import MAX_RECORD_BYTES, MAX_RECORD_VALUES

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema


_SHOWN_CHARACTERS = 500


class Unreadable:
    """A placeholder for a value that is damaged or that Python cannot represent, with the reason."""

    def __init__(self, error: Exception) -> None:
        self.reason: str = " ".join(str(error).split())[:_SHOWN_CHARACTERS] or type(error).__name__


def column_names(schema: "Schema", origin: str) -> list[str]:
    """Return the names of columns.

    Raises InputError, which names the origin, if two names are equal or a name is not UTF-8.
    """
    try:
        names = list(schema.names)
    except UnicodeDecodeError as error:
        raise InputError(
            f"the name of a column in {origin} is not UTF-8 ({error.object!r}); rename the column"
        ) from error
    check_names(names, origin)
    return names


def values_of(column: Any) -> list[Any]:
    """Convert a column to Python values; if that fails, convert each value separately."""
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        # Convert each used value only once, however often it recurs.
        places = column.indices.to_pylist()
        used = [place for place in dict.fromkeys(places) if place is not None]
        # The dictionaries of polars are views of texts, for which take() is not implemented.
        slices = [column.dictionary.slice(place, 1) for place in used]
        taken = values_of(pyarrow.concat_arrays(slices)) if slices else []
        values = dict(zip(used, taken, strict=True))
        return [values.get(place) for place in places]
    if types.is_string(kind) or types.is_large_string(kind):
        # Decode the bytes here, because they may not be valid UTF-8.
        texts = column.cast(pyarrow.large_binary()).to_pylist()
        return [None if item is None else _decoded(item) for item in texts]
    if _is_list(kind) and (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        # These are vectors: use NumPy arrays rather than an object for each number.
        return [_numbers(item) for item in column]
    if (coarser := _without_nanoseconds(kind)) != kind:
        # A safe cast would fail if it had to drop nanoseconds.
        column = column.cast(coarser, safe=False)
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, pyarrow.ArrowException):
        # If Python cannot represent a value, the other values of the column are still converted.
        return [_value(item) for item in column]


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _without_nanoseconds(kind: Any) -> Any:
    """Convert a type to one whose times have the precision of Python, which is microseconds."""
    import pyarrow
    from pyarrow import types

    if types.is_struct(kind):
        return pyarrow.struct([member.with_type(_without_nanoseconds(member.type)) for member in kind])
    if types.is_list(kind):
        return pyarrow.list_(kind.value_field.with_type(_without_nanoseconds(kind.value_type)))
    if types.is_timestamp(kind) and kind.unit == "ns":
        return pyarrow.timestamp("us", kind.tz)
    if types.is_duration(kind) and kind.unit == "ns":
        return pyarrow.duration("us")
    return pyarrow.time64("us") if types.is_time64(kind) else kind


def _numbers(scalar: Any) -> Any:
    values = scalar.values
    if values is None:
        return None
    return values.to_pylist() if values.null_count else values.to_numpy(zero_copy_only=False)


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, ArithmeticError) as error:
        return Unreadable(error)


def _duration(value: timedelta) -> float:
    return value.total_seconds()


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


_CONVERSIONS: dict[type, Callable[[Any], object]] = {
    bytes: _decoded,
    datetime: datetime.isoformat,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: _duration,
    Decimal: str,
    UUID: str,
}


def as_json(value: Any) -> object:
    """Convert a value of pyarrow or of a database to its JSON equivalent."""
    if isinstance(value, float):
        # Only NaN differs from itself, and JSON has no NaN.
        return None if value != value else value
    if isinstance(value, dict):
        return {name: as_json(item) for name, item in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) and isinstance(item[0], str) for item in value):
            return {name: as_json(item) for name, item in value}  # a map
        return [as_json(item) for item in value]
    if isinstance(value, tuple):
        return [as_json(item) for item in value]
    if hasattr(value, "tolist"):
        return as_json(value.tolist())

    convert = _CONVERSIONS.get(type(value))
    return value if convert is None else convert(value)


ROWS_AT_ONCE = 64
BYTES_AT_ONCE = 64_000_000
VALUE_BYTES = MAX_RECORD_BYTES // MAX_RECORD_VALUES
# The approximate size of the dict that a row of a struct becomes.
_OBJECT_BYTES = 200


def slices_of(batch: "RecordBatch") -> Iterator["RecordBatch"]:
    """Cut a batch into slices of at most 64 rows and some 64 MB; a slice of a single row may be larger.

    Raises ArrowInvalid if the offsets of the batch are damaged.
    """
    batch.validate()
    for begin in range(0, batch.num_rows, ROWS_AT_ONCE):
        yield from _halved(batch.slice(begin, ROWS_AT_ONCE))


def _halved(batch: "RecordBatch") -> Iterator["RecordBatch"]:
    if batch.num_rows <= 1 or decoded_size(batch) <= BYTES_AT_ONCE:
        yield batch
    else:
        half = batch.num_rows // 2
        yield from _halved(batch.slice(0, half))
        yield from _halved(batch.slice(half))


def decoded_size(batch: "RecordBatch") -> int:
    """Estimate the bytes that the rows take as Python values; beyond the limit of a record the estimate is rough."""
    return sum(map(_size, batch.columns))


def _size(array: Any) -> int:
    from pyarrow import ExtensionArray, types

    kind, size = array.type, VALUE_BYTES * len(array)
    if isinstance(array, ExtensionArray):
        return _size(array.storage)
    if size > MAX_RECORD_BYTES or not len(array):
        return size
    if types.is_struct(kind):
        return size + _OBJECT_BYTES * len(array) + sum(map(_size, array.flatten()))
    if types.is_fixed_size_list(kind):
        return size + (
            size * kind.list_size if size * kind.list_size > MAX_RECORD_BYTES else _size(array.flatten())
        )
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        ends = _checked(np.asarray(array.offsets))
        return size + _size(array.values.slice(ends[0], ends[-1] - ends[0]))
    if _has_offsets(kind):
        ends = _ends(array)
        return size + int(ends[-1] - ends[0])
    if types.is_fixed_size_binary(kind):
        return size + int(kind.byte_width) * len(array)
    for part, count in _parts(array):
        size += (part if isinstance(part, int) else _size(part)) * count
        if size > MAX_RECORD_BYTES:
            break
    return size


def _parts(array: Any) -> Iterable[tuple[Any, int]]:
    """Yield the slices of other arrays that an array refers to, or their sizes, with the number of references."""
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind):
        yield from _dictionary_parts(array)
    elif types.is_run_end_encoded(kind):
        first, runs = array.find_physical_offset(), array.find_physical_length()
        # Run ends count from the beginning of the whole array, of which this may be a slice.
        ends = np.clip(np.asarray(array.run_ends)[first : first + runs], None, array.offset + len(array))
        for at, length in enumerate(np.diff(ends, prepend=array.offset).tolist(), first):
            yield array.values.slice(at, 1), length
    elif types.is_list_view(kind) or types.is_large_list_view(kind):
        for at, length in zip(array.offsets.to_pylist(), array.sizes.to_pylist(), strict=True):
            yield array.values.slice(at, length), 1
    elif types.is_string_view(kind) or types.is_binary_view(kind):
        array.validate(full=True)
        # A view has 16 bytes, which begin with the length as int32.
        lengths = np.frombuffer(array.buffers()[1], np.int32)[4 * array.offset :: 4][: len(array)]
        yield int(lengths.sum(dtype=np.int64)), 1
    elif types.is_union(kind):  # an upper limit, because it is not known which rows refer to which field
        for at in range(kind.num_fields):
            yield array.field(at), len(array) if kind.mode == "dense" else 1


def _dictionary_parts(array: Any) -> Iterator[tuple[Any, int]]:
    used, counts = np.unique(np.asarray(array.indices.drop_null()), return_counts=True)
    if len(used) and not 0 <= used[0] <= used[-1] < len(array.dictionary):
        raise _damaged()
    if _has_offsets(array.type.value_type):
        ends = _ends(array.dictionary)
        yield int(((ends[used + 1] - ends[used]).astype(np.int64) * counts).sum()), 1
    else:
        for at, count in zip(used.tolist(), counts.tolist(), strict=True):
            yield array.dictionary.slice(at, 1), count


def _has_offsets(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    )


def _ends(array: Any) -> NDArray[Any]:
    """Return the offsets of n texts, which are n + 1 integers, after checking that they ascend."""
    from pyarrow import types

    is_large = types.is_large_string(array.type) or types.is_large_binary(array.type)
    # Buffer 0 marks the texts that are null, buffer 1 has the offsets.
    ends = np.frombuffer(array.buffers()[1], np.int64 if is_large else np.int32)
    return _checked(ends[array.offset : array.offset + len(array) + 1])


def _checked(ends: NDArray[Any]) -> NDArray[Any]:
    if (ends[1:] < ends[:-1]).any():
        raise _damaged()
    return ends


def _damaged() -> Exception:
    from pyarrow import ArrowInvalid

    damage: Exception = ArrowInvalid("its offsets or indices are not valid")
    return damage
