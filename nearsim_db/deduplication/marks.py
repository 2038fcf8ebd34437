"""Mark near-duplicates instead of removing them: which record each duplicates, its cluster, and their similarity."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import orjson

from nearsim_db.deduplication.clusters import Duplicates
from nearsim_db.deduplication.folders import Shard
from nearsim_db.deduplication.kept_records import output_encoding
from nearsim_db.deduplication.output import Outputs
from nearsim_db.deduplication.reading import RecordReader
from nearsim_db.errors import InputError
from nearsim_db.readers import Source
from nearsim_db.readers.inputs import Input
from nearsim_db.readers.places import RecordPlaces
from nearsim_db.readers.writers.delimited import lines_of
from nearsim_db.readers.writers.file_format import Encoding, FileFormat
from nearsim_db.similarity.arrays import Floats, Ints

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema

Values = tuple[str | None, int | None, int | None, float | None]


def refuse_unmarkable(
    parts: Sequence[Input], outputs: Outputs, shards: Sequence[Shard], names: Sequence[str]
) -> None:
    """Raise InputError if an output format has no columns, or if the first record of an input has a mark's name."""
    encodings = [shard.encoding for shard in shards]
    if outputs.unique is not None and not outputs.sharded:
        encodings = [output_encoding(parts, outputs.unique, outputs.format)]
    if any(encoding.format is FileFormat.LINES for encoding in encodings):
        raise InputError("lines of text have no room for marks; write JSON lines: --output NAME.jsonl")
    for part in parts:
        for _, record in part.records():
            _refuse_existing(part.path, record, names)
            break


def _refuse_existing(path: Path, columns: Mapping[str, object] | Sequence[str], names: Sequence[str]) -> None:
    for name in names:
        if name in columns:
            raise InputError(
                f"{path} has '{name}' already; name the marks otherwise, as by --mark-prefix nearsim_"
            )


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of all records. Arrays have an element for each record, in the order of their numbers."""

    names: tuple[str, ...]  # of the columns with the marks
    match: Ints  # number of the record that is kept instead, -1 for a record that is kept
    similarities: Floats  # with that record; nan if there is none, or if the two are not a pair
    clusters: Ints  # number of the cluster, from 1; 0 for a record in no cluster
    sizes: Ints  # documents in the cluster, 1 without a cluster
    has_clusters: bool  # false with --against
    places: RecordPlaces  # for the ids of records

    @classmethod
    def of(
        cls, duplicates: Duplicates, places: RecordPlaces, names: tuple[str, ...], *, has_clusters: bool
    ) -> Self:
        """Return the marks of all records."""
        match, members = duplicates.match, duplicates.clusters
        removed = np.flatnonzero(match >= 0)
        similarities = np.full(len(match), np.nan)
        similarities[removed] = duplicates.similarities(removed, match[removed])

        clusters, sizes = np.zeros(len(match), np.int64), np.ones(len(match), np.int64)
        clusters[members.numbers] = members.cluster_ids + 1
        sizes[members.numbers] = np.bincount(members.cluster_ids)[members.cluster_ids]
        return cls(names, match, similarities, clusters, sizes, has_clusters, places)

    def values(self, number: int) -> Values:
        """Return the values of the marks of a record."""
        kept, similarity = int(self.match[number]), float(self.similarities[number])
        return (
            None if kept < 0 else self.places.find(kept)[1],
            int(self.clusters[number]) or None,
            int(self.sizes[number]) if self.has_clusters else None,
            None if np.isnan(similarity) else similarity,
        )

    def inputs(self, source: Source, parts: Sequence[Input], reader: RecordReader) -> "list[MarkedInput]":
        """Return the inputs as inputs that add the marks to their records."""
        numbers = reader.placed_numbers()
        return [
            MarkedInput(source, part.path, self, *placed) for part, placed in zip(parts, numbers, strict=True)
        ]

    def shards(self, source: Source, shards: Sequence[Shard], reader: RecordReader) -> list[Shard]:
        """Return the files to write, with inputs that add the marks."""
        numbers, marked = reader.placed_numbers(), []
        for shard in shards:
            positions, first = numbers[shard.part]
            begin = int(positions.searchsorted(shard.begin))
            end = len(positions) if shard.end is None else int(positions.searchsorted(shard.end))
            marked_input = MarkedInput(
                source, shard.source.path, self, positions[begin:end] - shard.begin, first + begin
            )
            marked.append(replace(shard, source=marked_input))
        return marked


class MarkedInput(Input):
    """An input that adds the marks after the columns of each record as it is read.

    `positions` has the position of each document in the input, ascending; `first` is the number of the first document.
    Rejected records get no marks. Raises InputError for a record that has a key with the name of a mark.
    """

    def __init__(self, source: Source, path: Path, marks: Marks, positions: Ints, first: int) -> None:
        super().__init__(source, path)
        self._marks, self._positions, self._first = marks, positions, first

    def _values(self, position: int) -> Values | None:
        """Return the marks of the record at a position, None for a rejected record."""
        at = int(self._positions.searchsorted(position))
        if at == len(self._positions) or self._positions[at] != position:
            return None
        return self._marks.values(self._first + at)

    def columns(self) -> list[str]:
        """Return the names of all columns, the marks last."""
        marks = self._marks.names
        return [*(name for name in super().columns() if name not in marks), *marks]

    def blocks(self) -> Iterator[tuple[int, list[bytes | None]]]:
        """Yield JSON lines as `Input.blocks` does, to which the marks are appended."""
        for first, lines in super().blocks():
            for at, line in enumerate(lines):
                values = None if line is None else self._values(first + at)
                if line is not None and values is not None:
                    _refuse_existing(self.path, self.record_of(line), self._marks.names)
                    marks = orjson.dumps(dict(zip(self._marks.names, values, strict=True)))
                    # Keep what follows the object, such as a carriage return, at the end of the line.
                    record = line.rstrip()
                    lines[at] = record[:-1] + b"," + marks[1:] + line[len(record) :]
            yield first, lines

    def header(self) -> tuple[bytes, list[str]]:
        """Return the header as `Input.header` does."""
        raw, names = super().header()
        _refuse_existing(self.path, names, self._marks.names)
        return (self._with_cells(raw, self._marks.names) if raw else raw), [*names, *self._marks.names]

    def rows(self) -> Iterator[tuple[int, bytes]]:
        """Yield rows as `Input.rows` does."""
        for position, raw in super().rows():
            values = self._values(position)
            yield position, raw if values is None else self._with_cells(raw, values)

    def _with_cells(self, raw: bytes, values: Sequence[object]) -> bytes:
        """Return a row with additional cells, quoted as in the file."""
        lines = lines_of(self.in_its_quotes(Encoding(FileFormat.CSV)))

        # The marks go before the line end of the row.
        row = raw.rstrip(b"\r\n")
        cells = lines.line(values).removesuffix("\n").encode()
        return row + self.delimiter.encode() + cells + raw[len(row) :]

    def schema(self) -> "Schema":
        """Return the schema as `Input.schema` does."""
        import pyarrow

        schema, names = super().schema(), self._marks.names
        if self.format is FileFormat.PARQUET:
            _refuse_existing(self.path, schema.names, names)
        columns = [field for field in schema if field.name not in names]
        kinds = (pyarrow.string(), pyarrow.int64(), pyarrow.int64(), pyarrow.float64())
        marks = [pyarrow.field(name, kind) for name, kind in zip(names, kinds, strict=True)]
        return pyarrow.schema([*columns, *marks], schema.metadata)

    def batches(self) -> Iterator[tuple[int, "RecordBatch"]]:
        """Yield batches as `Input.batches` does."""
        import pyarrow

        nothing: Values = (None, None, None, None)
        fields = list(self.schema())[-len(nothing) :]
        for begin, batch in super().batches():
            rows = [self._values(position) or nothing for position in range(begin, begin + batch.num_rows)]
            for at, field in enumerate(fields):
                batch = batch.append_column(field, pyarrow.array([row[at] for row in rows], field.type))
            yield begin, batch

    def records(self) -> Iterator[tuple[int, Mapping[str, object]]]:
        """Yield records as `Input.records` does."""
        for position, record in super().records():
            values = self._values(position)
            # Records of Parquet files got their marks in `batches`.
            if values is None or self.format is FileFormat.PARQUET:
                yield position, record
                continue
            _refuse_existing(self.path, record, self._marks.names)
            yield position, {**record, **dict(zip(self._marks.names, values, strict=True))}
