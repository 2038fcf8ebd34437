"""The Parquet schema of records of JSON, inferred from all of them."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow import Schema

_RECORDS_AT_ONCE = 1_000


def inferred_schema(records: Iterable[Mapping[str, object]]) -> "Schema":
    """Return a schema that all records fit; values of types that do not fit each other become strings of JSON."""
    import pyarrow

    kinds: dict[str, Any] = {}
    batches: Iterator[Mapping[str, object]] = iter(records)
    while batch := list(islice(batches, _RECORDS_AT_ONCE)):
        for name in dict.fromkeys(name for record in batch for name in record):
            found = _type_of([record.get(name) for record in batch])
            kinds[name] = _common(kinds[name], found) if name in kinds else found
    return pyarrow.schema(kinds.items())


def _type_of(values: list[object]) -> Any:
    import pyarrow

    try:
        found = pyarrow.array(values).type
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        return pyarrow.string()
    return found if _is_writable(found) else pyarrow.string()


def _is_writable(kind: Any) -> bool:
    """Whether Parquet has the type: it has no struct without fields."""
    inner = [kind.field(at).type for at in range(kind.num_fields)]
    return str(kind) != "struct<>" and all(map(_is_writable, inner))


def _common(one: Any, other: Any) -> Any:
    import pyarrow

    try:
        schemas = [pyarrow.schema([("", kind)]) for kind in (one, other)]
        return pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pyarrow.ArrowException, TypeError):
        return pyarrow.string()
