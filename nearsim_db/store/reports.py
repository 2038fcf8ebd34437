"""What a report says of an index, read in one snapshot: aggregates, and the first rows of long lists."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine

from nearsim_db.records import CollectionId
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.engine import driver, translated
from nearsim_db.store.driver.statements import Leaves, statement


@dataclass(frozen=True, slots=True)
class Corpus:
    """The documents of a collection counted; dates are texts of UTC, None where none is finite."""

    documents: int
    with_title: int
    with_source: int
    with_date: int
    sources: int
    first_date: str | None
    last_date: str | None
    pinned: int
    vetoed: int


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What makes a cluster more or less suspicious; `members` counts the survivor too.

    `chained` members were never found alike with the survivor; of the others `mean` and `least` are the similarities
    with it, None where there are none. `renumbered` members have other numbers than the survivor. `span_seconds` lies
    between the first and the last date.
    """

    cluster_id: int
    survivor_id: int
    members: int
    chained: int
    mean: float | None
    least: float | None
    renumbered: int
    sources: int
    span_seconds: float | None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a cluster; `similarity` is that with the survivor, None where the two were never found alike."""

    external_id: str
    title: str | None
    source: str | None
    date: str | None
    survives: bool
    similarity: float | None
    numbers_differ: bool


@dataclass(frozen=True, slots=True)
class SourceCount:
    """A source: its documents, those in clusters, the clusters in which it was first, its survivors."""

    source: str | None
    documents: int
    clustered: int
    first: int
    survivors: int


@dataclass(frozen=True, slots=True)
class Copies:
    """Pairs of documents of two sources: how many were published by one first, by the other, at once.

    Delays are medians in seconds, None where there is none. Of a source with itself all are `one_first`.
    """

    one: str | None
    other: str | None
    pairs: int
    one_first: int
    one_delay_seconds: float | None
    other_first: int
    other_delay_seconds: float | None
    at_once: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket: how many heads are in it, how many links the limit leaves out, what its first members are called."""

    bucket_hash: int
    members: int
    left_out: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Buckets:
    """The largest buckets, and of all with two or more members how many there are, and what the limit leaves out."""

    largest: tuple[Bucket, ...]
    shared: int
    over_limit: int
    left_out: int


@dataclass(frozen=True, slots=True)
class Featureless:
    """A document without features; `characters` is the length of its body."""

    external_id: str
    title: str | None
    source: str | None
    characters: int


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """A connection that reads everything as it was at one moment, and writes nothing."""
    reading = engine.connect().execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with translated(), reading as connection:
        driver(connection).execute(statement("raise_work_mem"))
        yield connection


def count_corpus(connection: Connection, collection_id: CollectionId) -> Corpus:
    """The documents of a collection, and what was decided about them."""
    (row,) = _rows(connection, "count_corpus", None, {"collection_id": collection_id})
    return Corpus(*row)


def count_similarities(connection: Connection, leaves: Leaves, least: float, steps: int) -> NDArray[np.int64]:
    """Stored pairs in equal steps of similarity from `least` to 1: (steps, 2) of those with the same numbers, others.

    What is below `least` counts for the first step.
    """
    counts = np.zeros((steps, 2), np.int64)
    parameters = {"least": least, "steps": steps}
    for step, same, other in _rows(connection, "count_similarities", leaves, parameters):
        counts[step] = same, other
    return counts


def stream_cluster_facts(connection: Connection, leaves: Leaves) -> Iterator[ClusterFacts]:
    """All clusters, in no order; close the stream when leaving it early."""
    with driver(connection).cursor(name="nearsim_cluster_facts") as cursor:
        cursor.itersize = 5000
        for row in cursor.execute(statement("read_cluster_facts", leaves)):
            yield ClusterFacts(*cast(tuple[Any, ...], row))


def read_cluster_details(
    connection: Connection, leaves: Leaves, cluster_ids: Sequence[int], members: int
) -> dict[int, list[Member]]:
    """The first members of some clusters: the survivor, then the ones that are least like it."""
    found: dict[int, list[Member]] = {}
    parameters = {"cluster_ids": packed_ids(list(cluster_ids)), "members": members}
    for cluster_id, *values in _rows(connection, "read_cluster_details", leaves, parameters):
        found.setdefault(cluster_id, []).append(Member(*values))
    return found


def count_sources(
    connection: Connection, leaves: Leaves, collection_id: CollectionId, amount: int
) -> tuple[list[SourceCount], int]:
    """The sources with most documents in clusters, and how many sources there are; None is one of them."""
    rows = _rows(connection, "count_sources", leaves, {"collection_id": collection_id, "amount": amount})
    return [SourceCount(*row[:-1]) for row in rows], rows[0][-1] if rows else 0


def count_copies(connection: Connection, leaves: Leaves, amount: int) -> tuple[list[Copies], int]:
    """The two sources with most pairs between them, and so on, and how many such twos there are."""
    rows = _rows(connection, "count_source_pairs", leaves, {"amount": amount})
    return [Copies(*row[:-1]) for row in rows], rows[0][-1] if rows else 0


def read_large_buckets(
    connection: Connection, leaves: Leaves, bucket_limit: int, amount: int, members: int
) -> Buckets:
    """The largest buckets with the titles of their first members, and what the limit leaves out of all."""
    parameters = {"bucket_limit": bucket_limit, "amount": amount, "members": members}
    rows = _rows(connection, "read_large_buckets", leaves, parameters)
    if not rows:
        return Buckets((), 0, 0, 0)
    largest = tuple(Bucket(row[0], row[1], row[2], tuple(row[3] or ())) for row in rows)
    shared, over_limit, left_out = map(int, rows[0][4:])
    return Buckets(largest, shared, over_limit, left_out)


def read_featureless(connection: Connection, leaves: Leaves, amount: int) -> list[Featureless]:
    """The first documents that have no features."""
    return [Featureless(*row) for row in _rows(connection, "read_featureless", leaves, {"amount": amount})]


def _rows(
    connection: Connection, name: str, leaves: Leaves | None, parameters: Mapping[str, object]
) -> list[tuple[Any, ...]]:
    return driver(connection).execute(statement(name, leaves), parameters).fetchall()
