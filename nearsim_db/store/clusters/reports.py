"""Queries behind the report, in one snapshot: aggregates, and the first rows of long lists."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from nearsim_db.errors import NotFoundError
from nearsim_db.records import CollectionId, Evidence
from nearsim_db.similarity.arrays import Ints
from nearsim_db.store.attached.source_rows import find_source
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.driver_errors import translate_errors
from nearsim_db.store.driver.statements import GenerationStatements, run, statement
from nearsim_db.store.query_rows import with_rounded_estimate


@dataclass(frozen=True, slots=True)
class Corpus:
    """Counts of a collection's documents; dates are UTC texts, None if none is finite."""

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
    """Measures of how suspicious a cluster is; `members` includes the survivor.

    `chained` members have no pair with the survivor; `mean` and `least` are the similarities of the others with it,
    None if there are none. The numbers of `renumbered` members differ. `span_seconds` is the time between
    the first and the last date.
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
    """A member of a cluster; `similarity` is with the survivor, None without a pair of the two."""

    external_id: str
    title: str | None
    source: str | None
    date: str | None
    url: str | None
    survives: bool
    similarity: float | None
    numbers_differ: bool


@dataclass(frozen=True, slots=True)
class SourceCount:
    """A source: its documents, those in clusters, the clusters whose earliest document it published, its survivors."""

    source: str | None
    documents: int
    clustered: int
    first: int
    survivors: int


@dataclass(frozen=True, slots=True)
class Copies:
    """Pairs of documents of two sources, by which one was published first.

    Delays are medians in seconds, None without dates. Within one source all pairs count as `one_first`.
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
class TimeStep:
    """Dated documents of a step of time that begins at `begin`; `copies` came after the first of their cluster."""

    begin: str
    documents: int
    copies: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Documents of a source that another source, or the same, had published first, in all and by steps of time."""

    first_source: str | None
    source: str | None
    documents: int
    delay_seconds: float
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OverTime:
    """Duplication over time in equal steps up to `end`: of all documents, and by the source that was first.

    One document in a hundred at each end is earlier or later, and counts in the first or last step.
    """

    end: str
    steps: tuple[TimeStep, ...]
    origins: tuple[Origin, ...]
    all_origins: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """Publications of a cluster: the first, and the number in each of equal steps from it to the last."""

    begin: str
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket: its number of heads, the links that the limit drops, the names of its first members."""

    bucket_hash: int
    members: int
    left_out: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Featureless:
    """A document without features; `characters` is the length of its body."""

    external_id: str
    title: str | None
    source: str | None
    characters: int


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Connect with a read-only snapshot of the database."""
    with translate_errors(), engine.snapshot() as connection:
        run(connection, "raise_work_mem")
        yield connection


def count_corpus(connection: Connection, collection_id: CollectionId) -> Corpus:
    """Count the documents of a collection, and the verdicts about them."""
    return run(connection, "count_corpus", collection_id=collection_id).one(Corpus)


def _by_step(counts: Sequence[tuple[int, int]], steps: int) -> tuple[int, ...]:
    """Return the count of each step, counted from 1 in `counts`, which has those above 0."""
    found = dict(counts)
    return tuple(found.get(step, 0) for step in range(1, steps + 1))


@dataclass(frozen=True, slots=True)
class ReportPair(Evidence):
    """A stored pair by doc_id; `cluster_id` is that of the left document, `verdict` the one in force."""

    left_id: int
    right_id: int
    numbers_differ: bool
    cluster_id: int | None
    verdict: str | None


@dataclass(frozen=True, slots=True)
class ReadText:
    """A document for display: `body` may be cut, `characters` is its full length, None without a text.

    `stale`: the text is not the one that was compared.
    """

    external_id: str
    title: str | None
    body: str | None
    characters: int | None
    source: str | None
    date: str | None
    url: str | None
    stale: bool


class ReportQueries(GenerationStatements):
    """Queries behind the report on a generation."""

    def count_similarities(self, least: float, steps: int) -> Ints:
        """Count stored pairs in equal steps of similarity from `least` to 1.

        Return int64 (steps, 2): pairs with the same numbers, pairs with different numbers. Similarities
        below `least` count in the first step.
        """
        counts = np.zeros((steps, 2), np.int64)
        for step, same, other in self.run("count_similarities", least=least, steps=steps).rows():
            counts[step] = same, other
        return counts

    def stream_cluster_facts(self) -> Iterator[ClusterFacts]:
        """Yield all clusters, unordered; close the stream when leaving it early."""
        return self.stream(ClusterFacts, "read_cluster_facts")

    def read_cluster_details(self, cluster_ids: Sequence[int], members: int) -> dict[int, list[Member]]:
        """Return the first members of some clusters: the survivor, then the least similar to it."""
        found: dict[int, list[Member]] = {}
        parameters = {"cluster_ids": packed_ids(list(cluster_ids)), "members": members}
        for cluster_id, *values in self.run("read_cluster_details", **parameters).rows():
            found.setdefault(cluster_id, []).append(Member(*values))
        return found

    def count_sources(self, collection_id: CollectionId, amount: int) -> tuple[list[SourceCount], int]:
        """Return the sources with most clustered documents, and the number of sources; None is one of them."""
        rows = self.run("count_sources", collection_id=collection_id, amount=amount).rows()
        return [SourceCount(*row[:-1]) for row in rows], rows[0][-1] if rows else 0

    def count_copies(self, amount: int) -> tuple[list[Copies], int]:
        """Return the pairs of sources with most pairs between them, and the number of such pairs of sources."""
        rows = self.run("count_source_pairs", amount=amount).rows()
        return [Copies(*row[:-1]) for row in rows], rows[0][-1] if rows else 0

    def count_over_time(self, collection_id: CollectionId, steps: int, amount: int) -> OverTime | None:
        """Count documents and copies over time, and the most frequent pairs of sources; None if nothing has a date."""
        found = self.run("count_over_time", collection_id=collection_id, steps=steps).rows()
        if not found:
            return None
        *_, first, last, end = found[0]
        rows = self.run("count_origins", first=first, last=last, steps=steps, amount=amount).rows()
        origins = tuple(
            Origin(first, source, documents, delay, _by_step(counts, steps))
            for first, source, documents, delay, counts, _ in rows
        )
        return OverTime(end, tuple(TimeStep(*row[:3]) for row in found), origins, rows[0][-1] if rows else 0)

    def read_timelines(self, cluster_ids: Sequence[int], steps: int) -> dict[int, Timeline]:
        """Return the timelines of some clusters; without those that have no dates."""
        parameters = {"cluster_ids": packed_ids(list(cluster_ids)), "steps": steps}
        rows = self.run("read_cluster_timelines", **parameters).rows()
        return {cluster_id: Timeline(begin, _by_step(counts, steps)) for cluster_id, begin, counts in rows}

    def read_large_buckets(
        self, bucket_limit: int, amount: int, members: int
    ) -> tuple[list[Bucket], tuple[int, int, int]]:
        """Return the largest buckets with the titles of their first members, and totals.

        These are how many buckets have two or more members, how many exceed the limit, and how many links it drops.
        """
        parameters = {"bucket_limit": bucket_limit, "amount": amount, "members": members}
        rows = self.run("read_large_buckets", **parameters).rows()
        shared, over_limit, left_out = map(int, rows[0][4:]) if rows else (0, 0, 0)
        return [Bucket(row[0], row[1], row[2], tuple(row[3] or ())) for row in rows], (
            shared,
            over_limit,
            left_out,
        )

    def read_featureless(self, amount: int) -> list[Featureless]:
        """Return the first documents without features."""
        return self.run("read_featureless", amount=amount).all(Featureless)

    def read_lowest_pairs(self, amount: int) -> list[ReportPair]:
        """Return the least similar pairs."""
        return self._sampled("read_lowest_pairs", {"amount": amount})

    def read_renumbered_pairs(self, amount: int) -> list[ReportPair]:
        """Return the most similar pairs whose numbers differ."""
        return self._sampled("read_numbers_differ_pairs", {"amount": amount})

    def read_spread_pairs(self, least: float, steps: int) -> list[ReportPair]:
        """Return one pair per equal step of similarity from `least` to 1, always the same for the same pairs."""
        return self._sampled("sample_pairs_by_similarity", {"least": least, "steps": steps})

    def read_texts(
        self, collection_id: CollectionId, doc_ids: Sequence[int], characters: int
    ) -> dict[int, ReadText]:
        """Return existing documents by doc_id, with at most so many characters of their bodies.

        Texts of an attached table are read from it if the user may, else as far as the index may read them.
        """
        try:
            source = find_source(self.connection, collection_id)
        except NotFoundError:
            source = None
        if source is None:
            command = statement("read_texts", self.leaves)
        else:
            command = statement("read_source_texts", self.leaves, **source.parts)
        parameters = {"doc_ids": packed_ids(list(doc_ids)), "characters": characters}
        return {doc_id: ReadText(*values) for doc_id, *values in self.run(command, **parameters).rows()}

    def _sampled(self, name: str, parameters: dict[str, object]) -> list[ReportPair]:
        return self.run(name, **parameters).all(with_rounded_estimate(ReportPair))
