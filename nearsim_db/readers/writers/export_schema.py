"""The Parquet schema of an export."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nearsim_db.errors import InputError

if TYPE_CHECKING:
    from pyarrow import Schema

_INTEGERS = ("doc_id", "revision", "cluster")
_MOMENTS = ("published_at", "created_at", "updated_at")


def export_schema(columns: Sequence[str], kinds: Mapping[str, Sequence[str]]) -> "Schema":
    """Return a schema for columns of documents and, with their `kinds` of values, for keys of attributes.

    Values of several kinds, arrays, objects and `attributes` become strings of JSON. Raises InputError without pyarrow.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise InputError(
            "writing Parquet requires the package pyarrow; pip install 'nearsim-db[parquet]'"
        ) from error
    return pyarrow.schema(
        [
            (name, _type_of_kinds(set(kinds[name])) if name in kinds else _type_of_column(name))
            for name in columns
        ]
    )


def _type_of_column(name: str) -> Any:
    import pyarrow

    if name in _INTEGERS:
        return pyarrow.int64()
    if name in _MOMENTS:
        return pyarrow.timestamp("us", "UTC")
    return pyarrow.list_(pyarrow.float32()) if name == "vector" else pyarrow.string()


def _type_of_kinds(kinds: set[str]) -> Any:
    import pyarrow

    kinds.discard("null")
    match sorted(kinds):
        case ["boolean"]:
            return pyarrow.bool_()
        case ["integer"]:
            return pyarrow.int64()
        case ["number"] | ["integer", "number"]:
            return pyarrow.float64()
        case _:
            return pyarrow.string()
