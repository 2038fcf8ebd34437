"""Columns of Arrow as Python values, and these as JSON."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

_SHOWN_CHARACTERS = 500


class Unreadable:
    """Placeholder for a value that is damaged or that Python cannot represent, with the reason."""

    def __init__(self, error: Exception) -> None:
        self.reason = " ".join(str(error).split())[:_SHOWN_CHARACTERS] or type(error).__name__


def values_of(column: Any) -> list[Any]:
    """Convert a column to Python values; if that fails, each value by itself."""
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        places = column.indices.to_pylist()
        used = [place for place in dict.fromkeys(places) if place is not None]
        values = dict(
            zip(used, values_of(column.dictionary.take(pyarrow.array(used, pyarrow.int64()))), strict=True)
        )
        return [values.get(place) for place in places]
    if types.is_string(kind) or types.is_large_string(kind):
        # As bytes, which may not be valid UTF-8, as in other files.
        texts = column.cast(pyarrow.large_binary()).to_pylist()
        return [None if one is None else _decoded(one) for one in texts]
    if _is_list(kind) and (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        return [_numbers(one) for one in column]
    if (coarser := _without_nanoseconds(kind)) != kind:
        column = column.cast(coarser, safe=False)
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, pyarrow.ArrowException):
        return [_value(one) for one in column]


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _without_nanoseconds(kind: Any) -> Any:
    """Convert a type to one with times of microsecond precision, as Python has."""
    import pyarrow
    from pyarrow import types

    if types.is_struct(kind):
        return pyarrow.struct([one.with_type(_without_nanoseconds(one.type)) for one in kind])
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
        return None if value != value else value
    if isinstance(value, dict):
        return {name: as_json(one) for name, one in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(one, tuple) and isinstance(one[0], str) for one in value):
            return {name: as_json(one) for name, one in value}  # a map
        return [as_json(one) for one in value]
    if isinstance(value, tuple):
        return [as_json(one) for one in value]
    if hasattr(value, "tolist"):
        return as_json(value.tolist())
    convert = _CONVERSIONS.get(type(value))
    return value if convert is None else convert(value)
