"""Two generations of a profile compared: counted in SQL over classes of documents, never over pairs of them.

A class is the documents with the same head in both generations. What is counted first stands in temporary tables of the
transaction, on which the samples rely.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from psycopg import sql
from sqlalchemy import Connection, Engine

from nearsim_db.errors import ConflictError
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.engine import driver, is_missing_table, translated
from nearsim_db.store.driver.statements import Leaves, statement

_TOLERANCE = 1e-9  # similarities that differ by less are the same
# A pair of heads with more classes at its ends than this, multiplied, is met from the pairs of the other generation.
_MOST_CLASSES = 100
_PARTS = 5


@dataclass(frozen=True, slots=True)
class Both:
    """The tables of two generations: of the one that answers, and of the one that it is compared with."""

    live: Leaves
    new: Leaves

    @property
    def parts(self) -> dict[str, sql.Composable]:
        """What statements on both have in them."""
        parents = {"signature": "signature", "pair": "similar_pair", "member": "cluster_member"}
        sides = {"live": self.live, "new": self.new}
        return {
            f"{side}_{name}": leaves.table(parent)
            for side, leaves in sides.items()
            for name, parent in parents.items()
        }


@dataclass(frozen=True, slots=True)
class DocumentTotals:
    """The documents of a generation; `heads` are those with features and without an earlier twin."""

    documents: int
    with_features: int
    without_features: int
    heads: int


@dataclass(frozen=True, slots=True)
class PairTotals:
    """Pairs of documents, twins expanded; `rescored` are those of the common ones whose similarity differs."""

    live: int
    new: int
    common: int
    rescored: int


@dataclass(frozen=True, slots=True)
class ClusterTotals:
    """Clusters counted; see docs/reindex-diff.md for what they are called."""

    live: int
    new: int
    same: int
    grown: int
    shrunk: int
    changed: int
    formed: int
    dissolved: int
    merged: int
    split: int
    survivor_changed: int


@dataclass(frozen=True, slots=True)
class Tie:
    """What makes two documents a pair in one generation; twins share all bands, and none are told of them."""

    twins: bool
    similarity: float
    shared_bands: int | None


@dataclass(frozen=True, slots=True)
class DiffPair:
    """Two documents by doc_id, standing for so many `pairs`; a tie is None where they are no pair."""

    left_id: int
    right_id: int
    pairs: int
    live: Tie | None
    new: Tie | None


@dataclass(frozen=True, slots=True)
class Survivor:
    """The document that is kept of a cluster; `external_id` is None where it is gone."""

    doc_id: int | None
    external_id: str | None
    title: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """A cluster of the other generation that shares documents with the one at hand."""

    cluster: int
    documents: int
    shared: int
    survivor: Survivor


@dataclass(frozen=True, slots=True)
class ChangedCluster:
    """A cluster whose documents are in several of the other generation: `all_parts`, the largest of them listed."""

    cluster: int
    documents: int
    survivor: Survivor
    all_parts: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a document stands in a generation; `feature_count` is None where it is not signed there."""

    doc_id: int
    exists: bool
    external_id: str | None
    title: str | None
    feature_count: int | None
    digest: UUID | None
    sketch: bytes | None
    waits: bool


@contextmanager
def comparing(engine: Engine) -> Iterator[Connection]:
    """A connection that sees everything as it was at one moment; what it makes is gone after the block."""
    reading = engine.connect().execution_options(isolation_level="REPEATABLE READ")
    with translated(), reading as connection:
        driver(connection).execute(statement("raise_work_mem"))
        try:
            yield connection
        except Exception as error:
            if is_missing_table(error):
                raise ConflictError("a generation was dropped while it was compared") from error
            raise


def count_documents(connection: Connection, leaves: Leaves) -> DocumentTotals:
    """The documents of one generation."""
    ((documents, with_features, twins),) = _rows(connection, statement("count_diff_documents", leaves))
    return DocumentTotals(documents, with_features, documents - with_features, with_features - twins)


def count_pairs(connection: Connection, both: Both) -> PairTotals:
    """Sort documents into classes, find the common pairs, and count."""
    inner, parts = driver(connection), both.parts
    inner.execute(statement("create_diff_classes", None, **parts))
    inner.execute(statement("create_diff_common", None, most_classes=sql.Literal(_MOST_CLASSES), **parts))
    (row,) = _rows(
        connection, statement("count_diff_pairs", None, tolerance=sql.Literal(_TOLERANCE), **parts)
    )
    return PairTotals(*map(int, row))


def count_clusters(connection: Connection, both: Both) -> ClusterTotals:
    """Find which clusters share documents, and count."""
    driver(connection).execute(statement("create_diff_overlaps", None, **both.parts))
    (row,) = _rows(connection, statement("count_diff_clusters", None, **both.parts))
    return ClusterTotals(*map(int, row))


def sample_lost(connection: Connection, both: Both, amount: int) -> list[DiffPair]:
    """Pairs of the live generation that the new one has not, after `count_pairs`; always the same of the same pairs."""
    found = _sample_absent(connection, both, "live", "new", amount)
    return [DiffPair(left, right, pairs, tie, None) for left, right, pairs, tie in found]


def sample_gained(connection: Connection, both: Both, amount: int) -> list[DiffPair]:
    """Pairs of the new generation that the live one has not, as `sample_lost`."""
    found = _sample_absent(connection, both, "new", "live", amount)
    return [DiffPair(left, right, pairs, None, tie) for left, right, pairs, tie in found]


def sample_rescored(connection: Connection, both: Both, amount: int) -> list[DiffPair]:
    """Pairs of both whose similarity differs, as `sample_lost`."""
    command = statement("read_diff_rescored", None, tolerance=sql.Literal(_TOLERANCE), **both.parts)
    rows = _rows(connection, command, {"amount": amount})
    return [DiffPair(min(row[:2]), max(row[:2]), row[2], Tie(*row[3:6]), Tie(*row[6:9])) for row in rows]


def sample_merged(connection: Connection, both: Both, amount: int) -> list[ChangedCluster]:
    """Clusters of the new generation with documents of several live ones, after `count_clusters`."""
    return _sample_clusters(connection, both, "new", "live", amount)


def sample_split(connection: Connection, both: Both, amount: int) -> list[ChangedCluster]:
    """Live clusters whose documents are in several of the new generation, after `count_clusters`."""
    return _sample_clusters(connection, both, "live", "new", amount)


def read_standings(connection: Connection, leaves: Leaves, doc_ids: Sequence[int]) -> dict[int, Standing]:
    """How some documents stand in a generation."""
    command = statement("read_diff_documents", leaves)
    rows = _rows(connection, command, {"doc_ids": packed_ids(sorted(set(doc_ids)))})
    return {row[0]: Standing(*row) for row in rows}


def _sample_absent(
    connection: Connection, both: Both, own: str, other: str, amount: int
) -> Iterator[tuple[int, int, int, Tie]]:
    parts = {
        "pair": both.parts[f"{own}_pair"],
        "other_pair": both.parts[f"{other}_pair"],
        "family": sql.Identifier(f"diff_{own}"),
        "head": sql.Identifier(f"{own}_head"),
        "other_head": sql.Identifier(f"{other}_head"),
        "left": sql.Identifier(f"{own}_left"),
        "right": sql.Identifier(f"{own}_right"),
    }
    rows = _rows(connection, statement("read_diff_absent", None, **parts), {"amount": amount})
    for twins, similarity, shared_bands, pairs, one, another in rows:
        yield min(one, another), max(one, another), int(pairs), Tie(twins, similarity, shared_bands)


def _sample_clusters(
    connection: Connection, both: Both, whole: str, part: str, amount: int
) -> list[ChangedCluster]:
    parts = {
        "whole": sql.Identifier(f"{whole}_cluster"),
        "part": sql.Identifier(f"{part}_cluster"),
        "whole_member": both.parts[f"{whole}_member"],
        "part_member": both.parts[f"{part}_member"],
    }
    command = statement("read_diff_clusters", None, **parts)
    found: dict[int, ChangedCluster] = {}
    listed: dict[int, list[Part]] = {}
    for row in _rows(connection, command, {"amount": amount, "parts": _PARTS}):
        cluster, documents, all_parts = row[:3]
        found[cluster] = ChangedCluster(cluster, int(documents), Survivor(*row[3:6]), all_parts, ())
        one = Part(row[6], int(row[7]), row[8], Survivor(*row[9:12]))
        listed.setdefault(cluster, []).append(one)
    return [
        ChangedCluster(one.cluster, one.documents, one.survivor, one.all_parts, tuple(listed[one.cluster]))
        for one in found.values()
    ]


def _rows(
    connection: Connection, command: sql.Composed, parameters: Mapping[str, object] | None = None
) -> list[tuple[Any, ...]]:
    return cast(list[tuple[Any, ...]], driver(connection).execute(command, parameters).fetchall())
