"""Remove near-duplicates from rows in memory, such as texts, mappings or data frames, without a database."""

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
from nearsim_db.similarity.recipe import Recipe, keeping, override, within_fields, without_review

_ROWS = Path("rows")
_PARAMETERS = ArgumentNames(
    "id=",
    "title=",
    "text=",
    "across=",
    "within=",
    "source=",
    "published_at=",
    dates="",
    records="",
    only_from="only_from=",
)


@dataclass(frozen=True, slots=True)
class RemovedRow:
    """A removed row, and the row that it duplicates."""

    row: int  # number of the removed row, from 0
    of: int | None  # number of the row that it duplicates, from 0; None if no row of its cluster is kept
    similarity: float | None  # None if the two are connected by other rows only, and if `of` is None
    against: bool  # whether `of` is a row of `against`, not of `rows`


@dataclass(frozen=True, slots=True)
class Deduped:
    """The result of `dedupe`: each row is kept, removed or rejected."""

    kept: tuple[int, ...]  # numbers of rows, from 0
    removed: tuple[RemovedRow, ...]
    rejects: tuple[
        Reject, ...
    ]  # rows that cannot be used; `file` is "rows" or "against", `line` counts from 1
    pairs: int  # number of pairs
    _all_rows: Any = field(repr=False)

    def rows(self) -> Any:
        """Return the kept rows: a data frame or table if the input was one, otherwise a list."""
        places, all_rows = list(self.kept), self._all_rows
        if hasattr(all_rows, "iloc"):
            # A data frame of pandas.
            return all_rows.iloc[places]
        if hasattr(all_rows, "take"):
            # A table of pyarrow, or an array.
            return all_rows.take(places)
        if hasattr(all_rows, "__arrow_c_stream__"):
            # A data frame of polars.
            return all_rows[places]
        return [all_rows[place] for place in places]


class _RowSource:
    """Presents rows in memory as the records of a file."""

    def __init__(self, rows: Rows, fields: Fields, name: str) -> None:
        self.fields: Fields = fields
        self._rows, self._name = rows, name

    def read(self, path: Path) -> Iterator[ReadDocument | Reject]:
        return from_documents(self._rows, self.fields, self._name)

    def __iter__(self) -> Iterator[ReadDocument | Reject]:
        return self.read(_ROWS)


class _Rejects(RejectWriter):
    """Collects all rejects in memory."""

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
    only_from: str | None = None,
    across: str | None = None,
    within: str | Sequence[str] | None = None,
    threshold: float | None = None,
    exact: bool = False,
    keep: str | Sequence[str] | None = None,
    recipe: Recipe | None = None,
    id: str = "id",
    title: str = "title",
    text: str | None = None,
    source: str = "source",
    published_at: str = "published_at",
    vector: str = "vector",
    threads: int | None = None,
) -> Deduped:
    """Find the near-duplicates among rows, and decide which rows to keep; no database is needed.

    rows: texts, mappings, tuples of id and text or of id, title and text, documents, or a data frame (pandas, polars,
    pyarrow). A row needs no id.
    against: other rows; a row with a near-duplicate among them is removed, too.
    only_against: compare rows with `against` only, not with each other.
    only_from: a source; only rows of this source are removed, and all others stay. Not allowed with `against`.
    across: a field whose values must differ in a pair.
    within: a field, or several, whose values must be equal in a pair.
    threshold: the minimum similarity of near-duplicates, by default that of the recipe.
    exact: only texts that are equal after normalisation are duplicates.
    keep: which row of a cluster to keep: a rule of the recipe key `cluster.keep`, or several rules in order.
    id, title, text, source, published_at, vector: the names of keys or columns; text="a,b" joins two of them. By
    default the text is 'text', or 'body' if there is no 'text'.
    threads: by default one for each core.

    A row that cannot be used is rejected with the reason. Raises RecipeError for an impossible value, and InputError
    for arguments that contradict each other, for a data frame that cannot be read, and if no row can be used.
    """
    if only_against and against is None:
        raise InputError("only_against requires against")
    if only_from is not None and against is not None:
        raise InputError("give either only_from or against, whose rows always stay, not both")
    if exact and threshold is not None:
        raise InputError("give either exact or threshold, not both")
    fields = Fields(
        id, title, text, source, "url", published_at, vector, ids="optional", arguments=_PARAMETERS
    )
    held = _held(rows)
    chosen = _recipe(recipe or Recipe(), 1.0 if exact else threshold, keep, within)
    against_sources = [] if against is None else [_RowSource(against, fields, "against")]
    comparison = Comparison.of(
        chosen, across, against=against is not None, only_against=only_against, only_from=only_from
    )

    with (
        EncodedRecords.under(chosen, threads, exact=exact) as records,
        open_vectors(None) as beside,
    ):
        own_source = _RowSource(held, fields, "rows")
        reader = RecordReader(own_source, [(_ROWS, False)], beside, against_sources, comparison)
        rejects = _Rejects()
        reader.read(records, None, rejects, silent, strict=False)
        reader.refuse_unusable()
        duplicates = find_duplicates(records, reader.labels, silent)

        places, first = reader.rows, reader.labels.against
        removed = np.flatnonzero(duplicates.is_removed)
        survivors = duplicates.match[removed]
        similarities = duplicates.similarities(removed, survivors).tolist()
        pairs = zip(removed.tolist(), survivors.tolist(), similarities, strict=True)
        return Deduped(
            kept=tuple(places[row] for row in range(first, len(records)) if not duplicates.is_removed[row]),
            removed=tuple(
                RemovedRow(
                    places[row],
                    None if of < 0 else places[of],
                    None if isnan(similarity) else similarity,
                    against=0 <= of < first,
                )
                for row, of, similarity in pairs
            ),
            rejects=tuple(rejects.all),
            pairs=duplicates.pair_count,
            _all_rows=held,
        )


def _held(rows: Rows) -> Any:
    """Return rows that can be read again and chosen by number; a stream becomes a list or a table."""
    if not hasattr(rows, "__arrow_c_stream__"):
        return rows if isinstance(rows, Sequence | Mapping | Document) else list(rows)
    if hasattr(rows, "__len__"):
        return rows
    import pyarrow

    return pyarrow.table(rows)


def _recipe(
    recipe: Recipe,
    threshold: float | None,
    keep: str | Sequence[str] | None,
    within: str | Sequence[str] | None,
) -> Recipe:
    if within is not None:
        recipe = within_fields(recipe, within)
    if threshold is not None:
        recipe = override(recipe, [f"match.threshold={threshold}"])
    return without_review(recipe if keep is None else keeping(recipe, keep))
