"""Remove near-duplicates from rows in memory: texts, mappings, tuples, documents, data frames; no database is used."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from nearsim_db.deduplication.clusters import find_duplicates
from nearsim_db.deduplication.comparison import Comparison
from nearsim_db.deduplication.reading import RecordReader
from nearsim_db.deduplication.records import EncodedRecords
from nearsim_db.errors import InputError
from nearsim_db.readers import Fields, RejectWriter, from_documents, open_vectors
from nearsim_db.readers.contract import ArgumentNames
from nearsim_db.readers.frames import Rows
from nearsim_db.records import Document, ReadDocument, Reject, silent
from nearsim_db.similarity.recipe import Recipe, override, within_fields, without_review

_ROWS = Path("rows")
_PARAMETERS = ArgumentNames(
    "id=", "title=", "text=", "across=", "within=", "source=", "published_at=", dates="", records=""
)


@dataclass(frozen=True, slots=True)
class RemovedRow:
    """A removed row and the row that it duplicates."""

    row: int  # from 0
    of: int  # from 0, among the rows that are compared with if `against`
    similarity: float | None  # None if only a chain of other rows connects the two
    against: bool


@dataclass(frozen=True, slots=True)
class Deduped:
    """What `dedupe` kept, removed and rejected, by the numbers of the rows from 0: together they are all rows.

    `rejects` have the reasons and the numbers from 1, those of `against` the file "against". `pairs` counts the pairs.
    """

    kept: tuple[int, ...]
    removed: tuple[RemovedRow, ...]
    rejects: tuple[Reject, ...]
    pairs: int
    _given: Any = field(repr=False)

    def rows(self) -> Any:
        """Return the rows that are kept: a data frame or table of the type given, otherwise a list."""
        places, given = list(self.kept), self._given
        if hasattr(given, "iloc"):
            # A data frame of pandas.
            return given.iloc[places]
        if hasattr(given, "take"):
            # A table of pyarrow, or an array.
            return given.take(places)
        if hasattr(given, "__arrow_c_stream__"):
            # A data frame of polars.
            return given[places]
        return [given[place] for place in places]


class _RowSource:
    """Rows as the records of one file."""

    def __init__(self, rows: Rows, fields: Fields, name: str) -> None:
        self.fields: Fields = fields
        self._rows, self._name = rows, name

    def read(self, path: Path) -> Iterator[ReadDocument | Reject]:
        return from_documents(self._rows, self.fields, self._name)

    def __iter__(self) -> Iterator[ReadDocument | Reject]:
        return self.read(_ROWS)


class _Rejects(RejectWriter):
    """Rejects in memory."""

    def __init__(self) -> None:
        super().__init__(None)
        self.all: list[Reject] = []

    def write(self, reject: Reject) -> None:
        super().write(reject)
        self.all.append(reject)


def dedupe(
    rows: Rows,
    *,
    against: Rows | None = None,
    only_against: bool = False,
    across: str | None = None,
    within: str | Sequence[str] | None = None,
    threshold: float | None = None,
    exact: bool = False,
    keep: str | None = None,
    recipe: Recipe | None = None,
    id: str = "id",
    title: str = "title",
    text: str | None = None,
    source: str = "source",
    published_at: str = "published_at",
    vector: str = "vector",
    threads: int | None = None,
) -> Deduped:
    """Find near-duplicates among rows, which no two kept rows are; no database is used.

    `rows` are texts, mappings, tuples of id and text or of id, title and text, documents, or a data frame (pandas,
    polars, pyarrow). `id` to `vector` name the keys or columns, "a,b" as the text two of them; the text is 'text', or
    else 'body'. A row needs no id.
    `against`, `only_against`, `across`, `within`, `threshold` and `exact` are those of nearsim dedupe, `keep` is
    `cluster.keep`.
    A row that cannot be used is rejected with the reason. Raises RecipeError for an impossible value, InputError for
    arguments that contradict each other, a data frame that cannot be read, or rows of which none can be used.
    """
    if only_against and against is None:
        raise InputError("only_against requires against")
    if exact and threshold is not None:
        raise InputError("give either exact or threshold, not both")
    fields = Fields(
        id, title, text, source, "url", published_at, vector, ids="optional", arguments=_PARAMETERS
    )
    held = _held(rows)
    chosen = _recipe(recipe or Recipe(), 1.0 if exact else threshold, keep, within)
    others = [] if against is None else [_RowSource(against, fields, "against")]
    comparison = Comparison.of(chosen, across, against=against is not None, only_against=only_against)

    with (
        EncodedRecords.under(chosen, threads, exact=exact) as records,
        open_vectors(None) as beside,
    ):
        reader = RecordReader(_RowSource(held, fields, "rows"), [(_ROWS, False)], beside, others, comparison)
        rejects = _Rejects()
        reader.read(records, None, rejects, silent, strict=False)
        reader.refuse_unusable()
        duplicates = find_duplicates(records, reader.labels, silent)

        places, first = reader.rows, reader.labels.against
        removed = np.flatnonzero(duplicates.match >= 0)
        survivors = duplicates.match[removed]
        similarities = duplicates.similarities(removed, survivors).tolist()
        pairs = zip(removed.tolist(), survivors.tolist(), similarities, strict=True)
        return Deduped(
            kept=tuple(places[row] for row in range(first, len(records)) if duplicates.match[row] < 0),
            removed=tuple(
                RemovedRow(places[row], places[of], None if isnan(similarity) else similarity, of < first)
                for row, of, similarity in pairs
            ),
            rejects=tuple(rejects.all),
            pairs=duplicates.pair_count,
            _given=held,
        )


def _held(rows: Rows) -> Any:
    """Return rows that can be read again and taken by number: those of a stream as a table."""
    if not hasattr(rows, "__arrow_c_stream__"):
        return rows if isinstance(rows, Sequence | Mapping | Document) else list(rows)
    if hasattr(rows, "__len__"):
        return rows
    import pyarrow

    return pyarrow.table(rows)


def _recipe(
    recipe: Recipe, threshold: float | None, keep: str | None, within: str | Sequence[str] | None
) -> Recipe:
    if within is not None:
        recipe = within_fields(recipe, within)
    if threshold is not None:
        recipe = override(recipe, [f"match.threshold={threshold}"])
    return without_review(recipe if keep is None else override(recipe, [f"cluster.keep={keep}"]))
