"""Cut repeated passages out of the records of files, without a database: read, cut and write."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import orjson

from nearsim_db.deduplication.comparison import Comparison
from nearsim_db.deduplication.files import (
    AgainstSummary,
    CutCounts,
    DedupeSummary,
    check_readable_twice,
)
from nearsim_db.deduplication.lists import write_lines
from nearsim_db.deduplication.output import Outputs, copy_records
from nearsim_db.deduplication.reading import RecordReader
from nearsim_db.deduplication.records import Ranks
from nearsim_db.deduplication.repeated_passages import Cut, PassageCutter, WindowIndex, without
from nearsim_db.errors import InputError
from nearsim_db.readers import RejectWriter, Source, open_vectors, refuse_overwriting_inputs
from nearsim_db.readers.delimited import raw_rows
from nearsim_db.readers.document_maker import DocumentMaker, number_as_text
from nearsim_db.readers.inputs import Input
from nearsim_db.readers.output import json_line
from nearsim_db.readers.places import RecordPlaces
from nearsim_db.readers.values import encodable, value_at
from nearsim_db.readers.writers.delimited import lines_of
from nearsim_db.readers.writers.file_format import Encoding, FileFormat
from nearsim_db.records import Document, Progress, silent
from nearsim_db.similarity import backend as backends
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, keep_policy
from nearsim_db.store.settings import encoding_from_environment

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class CutRecords:
    """Finds the cuts of each record as it is read."""

    def __init__(self, cutter: PassageCutter) -> None:
        self._cutter = cutter
        self.ranks: Ranks = Ranks(keep_policy("earliest"))
        self.sources_by: str | None = None
        self.cuts: dict[int, list[Cut]] = {}  # by number of the record
        self.emptied: set[int] = set()  # numbers of the records without any remaining text

    def __len__(self) -> int:
        return len(self.ranks)

    def add(
        self,
        documents: Sequence[Document],
        values: Sequence[object] = (),
        field_labels: Sequence[bytes] = (),
        sources: Sequence[object] = (),
    ) -> None:
        """Find the cuts in the texts of documents; titles are not cut."""
        for number, document in enumerate(documents, len(self)):
            cuts, left = self._cutter.cut(self._cutter.text_of(document.body or ""), number)
            if cuts:
                self.cuts[number] = cuts
                if not left.strip():
                    self.emptied.add(number)
        self.ranks.add(documents)

    def refusal(self, document: Document) -> str | None:
        """Return None: no document is refused."""
        return None

    def finish(self) -> None:
        """Do nothing, because `add` has already found all cuts."""


def cut_passages(
    source: Source,
    recipe: Recipe,
    outputs: Outputs,
    progress: Progress = silent,
    *,
    strict: bool = False,
    max_rejected: int | None = None,
) -> DedupeSummary:
    """Write all records without the passages that occur earlier in the input; whole sentences are cut.

    A record without any remaining text is not written. If the recipe reads pages, their texts are written instead of
    them. The file `outputs.cuts` lists all cuts. Records are read and written as by `dedupe`. Raises InputError if the
    recipe does not compare prose.
    """
    check_readable_twice(source.paths)
    source.refuse_repeated()
    refuse_overwriting_inputs(outputs.lists(), source.files)
    outputs.refuse_links_to(source.files)
    parts = [Input(source, path) for path in source.paths]
    backend, _ = encoding_from_environment()

    with (
        RecordPlaces() if outputs.cuts else nullcontext() as places,
        RejectWriter(outputs.rejects) as rejects,
        open_vectors(None) as beside,
    ):
        # Read, and find the cuts.
        cutter = PassageCutter(recipe, backends.resolve(backend), WindowIndex())
        records = CutRecords(cutter)
        by_line = [(part.path, part.is_by_line) for part in parts]
        reader = RecordReader(source, by_line, beside, (), Comparison())
        reader.read(records, places, rejects, progress, strict=strict)
        reader.refuse_unusable()

        # Read again, and write what remains.
        placed = reader.placed(records.cuts)
        inputs = [CutInput(source, part.path, cuts, cutter) for part, cuts in zip(parts, placed, strict=True)]
        shards = outputs.shards(source, inputs)
        reader.refuse_replacing(outputs.of_records(shards), source.files, max_rejected)
        is_emptied = np.zeros(len(records), bool)
        is_emptied[sorted(records.emptied)] = True
        if places is not None:
            write_lines(outputs.cuts, _lines(records, places))
        unique = copy_records(inputs, outputs, shards, reader.kept(is_emptied), progress)

    passages, characters = _totals(records.cuts.values())
    emptied = len(records.emptied)
    return DedupeSummary(
        ingest=reader.summary,
        against=AgainstSummary(0, 0, 0),
        unique=unique,
        duplicates=emptied,
        pairs=0,
        review_pairs=0,
        clusters=0,
        profile=resolve(recipe),
        warnings=(*reader.warnings(), *outputs.stale_warnings(shards)),
        rejected=reader.reasons.rejected(),
        cut=CutCounts(len(records.cuts) - emptied, passages, characters),
    )


def _totals(cuts_of_records: Iterable[list[Cut]]) -> tuple[int, int]:
    """Return the numbers of cut passages and characters; adjacent cuts are one passage."""
    passages = characters = 0
    for cuts in cuts_of_records:
        passages += len(cuts) - sum(before.end == cut.start for before, cut in pairwise(cuts))
        characters += sum(cut.end - cut.start for cut in cuts)
    return passages, characters


def _lines(records: CutRecords, places: RecordPlaces) -> Iterator[bytes]:
    """Yield a JSON line for each cut, in the order of the records."""
    for number, cuts in records.cuts.items():
        place, external_id, _ = places.find(number)
        for cut in cuts:
            kept_place, kept_in, _ = places.find(cut.document)
            yield json_line(
                {
                    **{"id": external_id, "start": cut.start, "end": cut.end, "kept_in": kept_in},
                    **{"removed": number in records.emptied, "place": place, "kept_place": kept_place},
                }
            )


class CutInput(Input):
    """An input whose texts are cut as it is read; `cuts` are by position of the record."""

    def __init__(
        self, source: Source, path: Path, cuts: Mapping[int, list[Cut]], cutter: PassageCutter
    ) -> None:
        super().__init__(source, path)
        self._cuts = cuts
        self._cutter = cutter
        maker = DocumentMaker(str(path), source.fields)
        # Groups of keys that may have the text: the first group with a text is used, its texts joined by line ends.
        self._key_groups = [
            *((name,) for name in maker.body_names),
            *(maker.joined[name] for name in maker.body_names if name in maker.joined),
        ]

    def blocks(self) -> Iterator[tuple[int, list[bytes | None]]]:
        """Yield lines as `Input.blocks` does, without the cuts."""
        for first, lines in super().blocks():
            for position in range(first, first + len(lines)):
                line = lines[position - first]
                if line is not None and self._changes(position):
                    record = self.record_of(line)
                    cut = self._cut(position, record)
                    if cut is not record:
                        lines[position - first] = self._line_of(cut)
            yield first, lines

    def _line_of(self, record: Mapping[str, object]) -> bytes:
        if self.format is FileFormat.LINES:
            (text,) = record.values()
            return " ".join(filter(None, str(text).split("\n"))).encode()
        return orjson.dumps(encodable(record))

    def rows(self) -> Iterator[tuple[int, bytes]]:
        """Yield rows as `Input.rows` does, without the cuts."""
        _, names = self.header()
        written = lines_of(self.in_its_quotes(Encoding(FileFormat.CSV)))
        rows = raw_rows(self._file, self.delimiter)
        if self._file.has_header:
            next(rows, None)
        for position, (raw, cells) in enumerate(rows):
            if cells is None or not self._changes(position):
                yield position, raw
                continue
            record = dict(zip(names, cells, strict=False))
            if (cut := self._cut(position, record)) is not record:
                # Keep the row's own line end.
                end = b"\r\n" if raw.endswith(b"\r\n") else b"\n"
                raw = written.line(list(cut.values())).encode().removesuffix(b"\n") + end
            yield position, raw

    def batches(self) -> Iterator[tuple[int, "RecordBatch"]]:
        """Yield batches as `Input.batches` does, without the cuts."""
        for begin, batch in super().batches():
            inside = list(filter(self._changes, range(begin, begin + batch.num_rows)))
            yield begin, self._cut_batch(batch, begin, inside) if inside else batch

    def _cut_batch(self, batch: "RecordBatch", begin: int, inside: Sequence[int]) -> "RecordBatch":
        import pyarrow

        # A text may be joined from several columns. Each column is cut, starting from the uncut values of the row.
        uncut = batch
        for name in dict.fromkeys(key.partition(".")[0] for keys in self._key_groups for key in keys):
            if name not in batch.schema.names:
                continue
            values = uncut.column(name).to_pylist()
            for position in inside:
                at = position - begin
                values[at] = self._cut(position, {**uncut.slice(at, 1).to_pylist()[0]})[name]
            field = batch.schema.field(name)
            batch = batch.set_column(
                batch.schema.get_field_index(name), field, pyarrow.array(values, field.type)
            )
        return batch

    def records(self) -> Iterator[tuple[int, Mapping[str, object]]]:
        """Yield records as `Input.records` does, without the cuts."""
        for position, record in super().records():
            yield position, self._cut(position, record) if self._changes(position) else record

    def files(self) -> Iterator[tuple[Input, int, int | None]]:
        """Yield files as `Input.files` does, each with its cuts."""
        for file, begin, end in super().files():
            in_file = {
                at - begin: cuts for at, cuts in self._cuts.items() if end is None or begin <= at < end
            }
            yield (
                file if file is self else CutInput(self._source, file.path, in_file, self._cutter),
                begin,
                end,
            )

    def _changes(self, position: int) -> bool:
        """Whether the record at a position may have another text: it has cuts, or its page becomes a text."""
        return position in self._cuts or self._cutter.reads_pages

    def _cut(self, position: int, record: Mapping[str, object]) -> Mapping[str, object]:
        for keys in self._key_groups:
            values = [(key, record[key] if key in record else value_at(record, key)) for key in keys]
            read = [(key, number_as_text(value) if len(keys) > 1 else value) for key, value in values]
            texts = [(key, text) for key, text in read if isinstance(text, str) and text]
            if texts and self._cutter.reads_pages:
                record, texts = self._as_text(record, texts)
            if texts:
                return _without(record, texts, self._cuts.get(position, ()))
        if position not in self._cuts:
            return record  # rejected, or without a text
        raise InputError(f"{self.path} changed between two readings; run the command again")

    def _as_text(
        self, record: Mapping[str, object], texts: list[tuple[str, str]]
    ) -> tuple[Mapping[str, object], list[tuple[str, str]]]:
        """Return a record with the text of its page, and that text with its key."""
        if len(texts) > 1:
            names = ", ".join(key for key, _ in texts)
            raise InputError(
                f"{self.path}: with normalise.html one field has the page, but the text is joined from {names}; "
                f"name one with {self._source.fields.arguments.body}"
            )
        ((key, page),) = texts
        text = self._cutter.text_of(page)
        return (record if text == page else _with_text(record, key, text)), [(key, text)]


def _without(
    record: Mapping[str, object], texts: Sequence[tuple[str, str]], cuts: Sequence[Cut]
) -> Mapping[str, object]:
    """Return a record without the cuts. Cuts count characters of the record's texts joined by line ends."""
    begin = 0
    for key, text in texts:
        end = begin + len(text)
        in_text = [
            Cut(max(cut.start, begin) - begin, min(cut.end, end) - begin, cut.document)
            for cut in cuts
            if cut.start < end and cut.end > begin
        ]
        if in_text:
            left = without(text, in_text)
            record = _with_text(record, key, left)
        # Skip the line end between two texts.
        begin = end + 1
    return record


def _with_text(record: Mapping[str, object], key: str, text: str) -> Mapping[str, object]:
    """Return a record with another text at a key, or at a path."""
    return {**record, key: text} if key in record else _with_value(record, key, text)


def _with_value(record: Mapping[str, object], path: str, text: str) -> Mapping[str, object]:
    """Return a record with another text at a path such as 'meta.text'."""
    first, dot, inner_path = path.partition(".")
    inner = record.get(first)
    if dot and not isinstance(inner, Mapping):
        raise InputError(f"the text at {path!r} cannot be cut, as it is in an array")
    changed = _with_value(inner, inner_path, text) if isinstance(inner, Mapping) and dot else text
    return {**record, first: changed}
