"""Write Parquet with pyarrow, in row groups of limited size, with the schema of an export or of JSON records."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from io import RawIOBase
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from nearsim_db.errors import InputError
from nearsim_db.readers.values import json_text
from nearsim_db.readers.writers.file_format import RecordWriter

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema

_RECORDS_AT_ONCE = 1_000
_CHARACTERS_AT_ONCE = 4_000_000
_GROUP_BYTES = 32_000_000
_GROUP_ROWS = 100_000


class _Sink(RawIOBase):
    """Passes the bytes that pyarrow writes on to a stream, unless the output was abandoned."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream
        self.is_abandoned = False

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        if not self.is_abandoned:
            self._stream.write(content)
        return len(content)


class ParquetWriter(RecordWriter):
    """Writes rows of a pyarrow schema.

    In a column of strings, any other value is written as JSON; in a column of floats, a Decimal is rounded. Raises
    InputError for a column whose type Parquet does not have, and for a value that does not fit its column.
    """

    def __init__(self, stream: BinaryIO, schema: "Schema") -> None:
        super().__init__(stream, schema.names)
        import pyarrow.parquet

        self._schema = schema
        self._sink = _Sink(stream)
        try:
            self._writer = pyarrow.parquet.ParquetWriter(self._sink, schema, compression="zstd")
        except pyarrow.ArrowException as error:
            raise InputError(
                f"Parquet cannot have a column of the input: {error}; write JSON lines"
            ) from error
        self._records: list[Mapping[str, object]] = []
        self._batches: list[RecordBatch] = []
        self._bytes = self._rows = self._characters = 0

    def write(self, record: Mapping[str, object]) -> None:
        self._records.append(record)
        self._characters += sum(len(value) for value in record.values() if isinstance(value, str))
        if len(self._records) >= _RECORDS_AT_ONCE or self._characters >= _CHARACTERS_AT_ONCE:
            self._convert()

    def write_batch(self, batch: "RecordBatch") -> None:
        """Write rows of pyarrow; columns that are missing in the batch become null."""
        self._convert()
        self._add(self._fitted(batch))

    def close(self) -> None:
        self._convert()
        self._write_group()
        self._writer.close()

    def abandon(self) -> None:
        self._sink.is_abandoned = True
        self._writer.close()

    def _convert(self) -> None:
        if self._records:
            records, self._records, self._characters = self._records, [], 0
            self._add(record_batch(records, self._schema))

    def _add(self, batch: "RecordBatch") -> None:
        self._batches.append(batch)
        self._bytes += batch.nbytes
        self._rows += batch.num_rows
        if self._bytes >= _GROUP_BYTES or self._rows >= _GROUP_ROWS:
            self._write_group()

    def _write_group(self) -> None:
        if self._batches:
            import pyarrow

            self._writer.write_table(pyarrow.Table.from_batches(self._batches, self._schema))
            self._batches, self._bytes, self._rows = [], 0, 0

    def _fitted(self, batch: "RecordBatch") -> "RecordBatch":
        import pyarrow

        if batch.schema.equals(self._schema):
            return batch.replace_schema_metadata(self._schema.metadata)
        columns = [
            batch.column(field.name).cast(field.type)
            if field.name in batch.schema.names
            else pyarrow.nulls(batch.num_rows, field.type)
            for field in self._schema
        ]
        return pyarrow.RecordBatch.from_arrays(columns, schema=self._schema)


def record_batch(records: Sequence[Mapping[str, object]], schema: "Schema") -> "RecordBatch":
    """Return records as rows of a schema. Raises InputError for a value that does not fit its column."""
    import pyarrow

    columns = [_column([record.get(field.name) for record in records], field) for field in schema]
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def _column(values: list[object], field: Any) -> Any:
    import pyarrow
    from pyarrow import types

    if types.is_string(field.type) or types.is_large_string(field.type):
        values = [value if value is None or isinstance(value, str) else json_text(value) for value in values]
    elif types.is_floating(field.type):
        values = [float(value) if isinstance(value, Decimal) else value for value in values]
    try:
        return pyarrow.array(values, field.type)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"column {field.name!r} cannot be written as {field.type}: {reason}; leave it out with --columns, or "
            "write another format"
        ) from error


_INTEGERS = (
    *(
        "doc_id",
        "revision",
        "cluster",
        "intersection",
        "union",
        "shared_bands",
        "rank",
        "matches",
        "event_id",
    ),
    *("left_id", "right_id", "cluster_id", "survivor_id", "generation_id"),
)
_FLOATS = ("similarity", "estimate", "distance")
_BOOLEANS = ("verified", "is_survivor", "numbers_differ")
_MOMENTS = ("published_at", "created_at", "updated_at", "at")


def parquet_schema(columns: Sequence[str], kinds: Mapping[str, Sequence[str]]) -> "Schema":
    """Return a schema for columns of documents and answers, and for keys of attributes.

    `kinds` has the kinds of values of each key of the attributes. Values of several kinds, arrays, objects and the
    column `attributes` become strings of JSON. Raises InputError if pyarrow is not installed.
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
    if name in _FLOATS:
        return pyarrow.float64()
    if name in _BOOLEANS:
        return pyarrow.bool_()
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


_RECORDS_INSPECTED = 1_000


def inferred_schema(records: Iterable[Mapping[str, object]]) -> "Schema":
    """Return a schema that fits all records; a column with incompatible types becomes a column of JSON strings."""
    import pyarrow

    kinds: dict[str, Any] = {}
    batches: Iterator[Mapping[str, object]] = iter(records)
    while batch := list(islice(batches, _RECORDS_INSPECTED)):
        for name in dict.fromkeys(name for record in batch for name in record):
            kind = _type_of([record.get(name) for record in batch])
            kinds[name] = _common(kinds[name], kind) if name in kinds else kind
    return pyarrow.schema(kinds.items())


def _type_of(values: list[object]) -> Any:
    import pyarrow

    try:
        kind = pyarrow.array(values).type
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        return pyarrow.string()
    return kind if _is_writable(kind) else pyarrow.string()


def _is_writable(kind: Any) -> bool:
    """Whether Parquet has the type; it has all types except structs without fields."""
    inner = [kind.field(at).type for at in range(kind.num_fields)]
    return str(kind) != "struct<>" and all(map(_is_writable, inner))


def _common(left: Any, right: Any) -> Any:
    import pyarrow

    try:
        schemas = [pyarrow.schema([("", kind)]) for kind in (left, right)]
        return pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pyarrow.ArrowException, TypeError):
        return pyarrow.string()
