"""Pairs chosen for people to look at, and the texts of their documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection

from nearsim_db.errors import NotFoundError
from nearsim_db.records import CollectionId
from nearsim_db.store.attached.source_rows import find_source
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import Leaves, statement


@dataclass(frozen=True, slots=True)
class ReportPair:
    """A stored pair by doc_id; `cluster_id` is that of the left document. Counts are None where the metric has none."""

    left_id: int
    right_id: int
    similarity: float
    estimate: float
    shared_bands: int
    intersection: int | None
    union: int | None
    numbers_differ: bool
    cluster_id: int | None


@dataclass(frozen=True, slots=True)
class ReadText:
    """A document as people read it: `body` may be cut, `characters` is its whole length, None without a text.

    `stale` says that the text is not the one that was compared.
    """

    external_id: str
    title: str | None
    body: str | None
    characters: int | None
    source: str | None
    date: str | None
    stale: bool


def read_lowest_pairs(connection: Connection, leaves: Leaves, amount: int) -> list[ReportPair]:
    """The least similar pairs."""
    return _pairs(connection, "read_lowest_pairs", leaves, {"amount": amount})


def read_renumbered_pairs(connection: Connection, leaves: Leaves, amount: int) -> list[ReportPair]:
    """The most similar pairs whose texts have different numbers."""
    return _pairs(connection, "read_numbers_differ_pairs", leaves, {"amount": amount})


def read_spread_pairs(connection: Connection, leaves: Leaves, least: float, steps: int) -> list[ReportPair]:
    """A pair of each of equal steps of similarity from `least` to 1, always the same of the same pairs."""
    return _pairs(connection, "sample_pairs_by_similarity", leaves, {"least": least, "steps": steps})


def read_texts(
    connection: Connection,
    leaves: Leaves,
    collection_id: CollectionId,
    doc_ids: Sequence[int],
    characters: int,
) -> dict[int, ReadText]:
    """Some documents by doc_id, with at most so many characters of their bodies; those gone are left out.

    Texts of a table that the collection follows are read there by whoever asks, else as far as the index may.
    """
    try:
        source = find_source(connection, collection_id)
    except NotFoundError:
        source = None
    if source is None:
        command = statement("read_texts", leaves)
    else:
        command = statement("read_source_texts", leaves, **source.parts)
    parameters = {"doc_ids": packed_ids(list(doc_ids)), "characters": characters}
    rows = cast(list[tuple[Any, ...]], driver(connection).execute(command, parameters).fetchall())
    return {doc_id: ReadText(*values) for doc_id, *values in rows}


def _pairs(
    connection: Connection, name: str, leaves: Leaves, parameters: dict[str, object]
) -> list[ReportPair]:
    command = statement(name, leaves)
    rows = cast(list[tuple[Any, ...]], driver(connection).execute(command, parameters).fetchall())
    return [ReportPair(*row) for row in rows]
