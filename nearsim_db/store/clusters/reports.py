"""Queries behind the report, in one snapshot: aggregates, and the first rows of long lists."""

from collections.abc import Iterator, Mapping, Sequence
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
class CorpusCounts:
    """Counts of a collection's documents."""

    documents: int
    with_title: int
    with_source: int
    with_date: int
    sources: int
    first_date: str | None  # UTC; None without a finite date
    last_date: str | None
    pinned: int  # active verdicts
    vetoed: int


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Measures of how suspicious a cluster is."""

    cluster_id: int
    survivor_id: int
    members: int  # with the survivor
    chained: int  # members without a pair with the survivor
    mean: float | None  # similarity of the other members with the survivor; None if there are none
    least: float | None
    renumbered: int  # members whose numbers differ from the survivor's
    sources: int
    span_seconds: float | None  # from the first to the last date


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a cluster."""

    external_id: str
    title: str | None
    source: str | None
    date: str | None
    url: str | None
    survives: bool
    similarity: float | None  # with the survivor; None if they are not a pair
    numbers_differ: bool


@dataclass(frozen=True, slots=True)
class SourceCount:
    """Counts of a source."""

    source: str | None
    documents: int
    clustered: int  # documents in clusters
    first: int  # clusters whose earliest document is of this source
    survivors: int


@dataclass(frozen=True, slots=True)
class Copies:
    """Pairs of documents of two sources, by which one was published first.

    Delays are medians, None without dates. Within one source all pairs count as `one_first`.
    """

    one: str | None  # the source with the smaller name
    other: str | None
    pairs: int
    one_first: int
    one_delay_seconds: float | None
    other_first: int
    other_delay_seconds: float | None
    at_once: int


@dataclass(frozen=True, slots=True)
class TimeStep:
    """Documents with a date in a step of time."""

    begin: str
    documents: int
    copies: int  # documents that came after the first of their cluster


@dataclass(frozen=True, slots=True)
class SourceOrigin:
    """Documents of a source whose cluster has an earlier document of `first_source`."""

    first_source: str | None
    source: str | None
    documents: int
    delay_seconds: float  # median
    steps: tuple[int, ...]  # documents by steps of time


@dataclass(frozen=True, slots=True)
class OverTime:
    """Duplication over time, in equal steps.

    The earliest and the latest hundredth of the documents count in the first and the last step.
    """

    end: str
    steps: tuple[TimeStep, ...]
    origins: tuple[SourceOrigin, ...]
    all_origins: int  # number of pairs of sources, of which `origins` has the most frequent ones


@dataclass(frozen=True, slots=True)
class Timeline:
    """Publications of a cluster: the date of the first, and numbers by equal steps to the last."""

    begin: str
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket."""

    bucket_hash: int
    members: int  # heads
    left_out: int  # links that the limit leaves out
    names: tuple[str, ...]  # of the first members


@dataclass(frozen=True, slots=True)
class Featureless:
    """A document without features."""

    external_id: str
    title: str | None
    source: str | None
    characters: int  # of the body


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Yield a session with a read-only snapshot of the database."""
    with translate_errors(), engine.snapshot() as connection:
        run(connection, "raise_work_mem")
        yield connection


def count_corpus(connection: Connection, collection_id: CollectionId) -> CorpusCounts:
    """Count the documents of a collection, and the verdicts about them."""
    return run(connection, "count_corpus", collection_id=collection_id).one(CorpusCounts)


def _by_step(counts: Sequence[tuple[int, int]], steps: int) -> tuple[int, ...]:
    """Return the count of each step, from (step, count) of the steps with documents; steps are numbered from 1."""
    count_of_step = dict(counts)
    return tuple(count_of_step.get(step, 0) for step in range(1, steps + 1))


@dataclass(frozen=True, slots=True)
class ReportPair(Evidence):
    """A stored pair."""

    left_id: int
    right_id: int
    numbers_differ: bool
    cluster_id: int | None  # of the left document
    verdict: str | None  # the active one


@dataclass(frozen=True, slots=True)
class ReadText:
    """A document for display."""

    external_id: str
    title: str | None
    body: str | None  # may be cut
    characters: int | None  # of the whole body; None without a text
    source: str | None
    date: str | None
    url: str | None
    stale: bool  # the text is not the one that was compared


class ReportQueries(GenerationStatements):
    """Queries behind the report on a generation."""

    def count_similarities(self, min_similarity: float, steps: int) -> Ints:
        """Count stored pairs in equal steps of similarity from `min_similarity` to 1.

        Returns int64 of (steps, 2): pairs with the same numbers, pairs with different numbers. Smaller similarities
        count in the first step.
        """
        counts = np.zeros((steps, 2), np.int64)
        rows = self.run("count_similarities", min_similarity=min_similarity, steps=steps).rows()
        for step, same_numbers, different_numbers in rows:
            counts[step] = same_numbers, different_numbers
        return counts

    def stream_cluster_facts(self) -> Iterator[ClusterFacts]:
        """Yield all clusters, unordered; close the stream when leaving it early."""
        return self.stream(ClusterFacts, "read_cluster_facts")

    def read_cluster_details(self, cluster_ids: Sequence[int], members: int) -> dict[int, list[Member]]:
        """Return some members of each of some clusters: the survivor, then the least similar to it."""
        members_of: dict[int, list[Member]] = {}
        parameters = {"cluster_ids": packed_ids(list(cluster_ids)), "members": members}
        for cluster_id, *values in self.run("read_cluster_details", **parameters).rows():
            members_of.setdefault(cluster_id, []).append(Member(*values))
        return members_of

    def count_sources(self, collection_id: CollectionId, amount: int) -> tuple[list[SourceCount], int]:
        """Return the sources with most clustered documents, None included, and the number of named sources."""
        rows = self.run("count_sources", collection_id=collection_id, amount=amount).rows()
        return [SourceCount(*row[:-1]) for row in rows], rows[0][-1] if rows else 0

    def count_copies(self, amount: int) -> tuple[list[Copies], int]:
        """Return the pairs of sources with most pairs of documents, and the number of pairs of sources."""
        rows = self.run("count_source_pairs", amount=amount).rows()
        return [Copies(*row[:-1]) for row in rows], rows[0][-1] if rows else 0

    def count_over_time(self, collection_id: CollectionId, steps: int, amount: int) -> OverTime | None:
        """Count documents and copies over time, and the most frequent pairs of sources; None if nothing has a date."""
        step_rows = self.run("count_over_time", collection_id=collection_id, steps=steps).rows()
        if not step_rows:
            return None

        # Each row ends with the first and the last time of all steps.
        *_, first, last, end = step_rows[0]
        origin_rows = self.run("count_origins", first=first, last=last, steps=steps, amount=amount).rows()
        origins = tuple(
            SourceOrigin(first_source, source, documents, delay, _by_step(counts, steps))
            for first_source, source, documents, delay, counts, _ in origin_rows
        )
        all_origins = origin_rows[0][-1] if origin_rows else 0
        return OverTime(end, tuple(TimeStep(*row[:3]) for row in step_rows), origins, all_origins)

    def read_timelines(self, cluster_ids: Sequence[int], steps: int) -> dict[int, Timeline]:
        """Return the timelines of the clusters, of some, that have dates."""
        parameters = {"cluster_ids": packed_ids(list(cluster_ids)), "steps": steps}
        rows = self.run("read_cluster_timelines", **parameters).rows()
        return {cluster_id: Timeline(begin, _by_step(counts, steps)) for cluster_id, begin, counts in rows}

    def read_large_buckets(
        self, bucket_limit: int, amount: int, members: int
    ) -> tuple[list[Bucket], tuple[int, int, int]]:
        """Return the largest buckets with the titles of their first members, and totals.

        Totals are the numbers of buckets with two or more members, of buckets over the limit, and of links left out.
        """
        parameters = {"bucket_limit": bucket_limit, "amount": amount, "members": members}
        rows = self.run("read_large_buckets", **parameters).rows()
        buckets = [
            Bucket(bucket_hash, size, left_out, tuple(names or ()))
            for bucket_hash, size, left_out, names, *_ in rows
        ]
        shared, over_limit, all_left_out = map(int, rows[0][4:]) if rows else (0, 0, 0)
        return buckets, (shared, over_limit, all_left_out)

    def read_featureless(self, amount: int) -> list[Featureless]:
        """Return the first documents without features."""
        return self.run("read_featureless", amount=amount).all(Featureless)

    def read_lowest_pairs(self, amount: int) -> list[ReportPair]:
        """Return the least similar pairs."""
        return self._pairs("read_lowest_pairs", {"amount": amount})

    def read_renumbered_pairs(self, amount: int) -> list[ReportPair]:
        """Return the most similar pairs whose numbers differ."""
        return self._pairs("read_numbers_differ_pairs", {"amount": amount})

    def read_spread_pairs(self, min_similarity: float, steps: int) -> list[ReportPair]:
        """Return a pair for each of equal steps of similarity from `min_similarity` to 1; repeatable."""
        parameters = {"min_similarity": min_similarity, "steps": steps}
        return self._pairs("sample_pairs_by_similarity", parameters)

    def read_texts(
        self, collection_id: CollectionId, doc_ids: Sequence[int], characters: int
    ) -> dict[int, ReadText]:
        """Return existing documents by doc_id, with up to `characters` of their bodies.

        Texts of an attached collection are read from its table if the user may, else by nearsim.bodies_of.
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

    def _pairs(self, name: str, parameters: Mapping[str, object]) -> list[ReportPair]:
        return self.run(name, **parameters).all(with_rounded_estimate(ReportPair))
