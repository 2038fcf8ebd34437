"""The queries of the report, which run in one snapshot: aggregates, and the first rows of long lists."""

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
    first_date: str | None  # in UTC; None if no document has a finite date
    last_date: str | None
    pinned: int  # number of pins in force
    vetoed: int  # number of vetoes in force


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Measures that show how suspicious a cluster is."""

    cluster_id: int
    survivor_id: int
    members: int  # number of members, including the survivor
    chained: int  # number of members that are not a pair with the survivor
    mean: (
        float | None
    )  # mean similarity between other members and the survivor; None if there are no pairs with it
    least: float | None  # lowest of these similarities
    renumbered: int  # number of members whose numbers differ from the survivor's
    sources: int  # number of sources
    span_seconds: float | None  # time from the first to the last date


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a cluster."""

    external_id: str
    title: str | None
    source: str | None
    date: str | None
    url: str | None
    survives: bool
    similarity: float | None  # similarity to the survivor; None if the two are not a pair
    numbers_differ: bool  # whether its numbers differ from the survivor's


@dataclass(frozen=True, slots=True)
class SourceCount:
    """Counts of a source."""

    source: str | None
    documents: int
    clustered: int  # number of documents in clusters
    first: int  # number of clusters whose earliest document is from this source
    survivors: int  # number of documents to keep in their clusters


@dataclass(frozen=True, slots=True)
class Copies:
    """Pairs of documents of two sources, counted by which source published first.

    Delays are medians, and None if no dates are known. Pairs within one source count as `one_first`, unless both
    documents have the same date.
    """

    one: str | None  # the source whose name sorts first
    other: str | None  # the other source
    pairs: int
    one_first: int  # number of pairs that `one` published first
    one_delay_seconds: float | None  # median time by which `other` was later in these pairs
    other_first: int  # number of pairs that `other` published first
    other_delay_seconds: float | None  # median time by which `one` was later in these pairs
    at_once: int  # number of pairs with equal dates


@dataclass(frozen=True, slots=True)
class TimeStep:
    """The documents whose date is in a step of time."""

    begin: str
    documents: int
    copies: int  # number of documents that were published after the first document of their cluster


@dataclass(frozen=True, slots=True)
class SourceOrigin:
    """Documents of a source in whose cluster the first document is from `first_source`."""

    first_source: str | None
    source: str | None
    documents: int
    delay_seconds: float  # median time after the first document
    steps: tuple[int, ...]  # number of documents in each step of time


@dataclass(frozen=True, slots=True)
class OverTime:
    """Duplication over time, in equal steps.

    The earliest hundredth of the documents counts in the first step, the latest hundredth in the last step.
    """

    end: str
    steps: tuple[TimeStep, ...]
    origins: tuple[SourceOrigin, ...]  # the most frequent pairs of sources
    all_origins: int  # number of all pairs of sources


@dataclass(frozen=True, slots=True)
class Timeline:
    """The publications of a cluster over time, in equal steps from the first to the last."""

    begin: str  # date of the first publication
    steps: tuple[int, ...]  # number of documents in each step


@dataclass(frozen=True, slots=True)
class Bucket:
    """A large bucket."""

    bucket_hash: int
    members: int  # number of heads
    left_out: int  # number of links that the bucket limit leaves out
    names: tuple[str, ...]  # titles, or else external ids, of the first members


@dataclass(frozen=True, slots=True)
class Featureless:
    """A document without features."""

    external_id: str
    title: str | None
    source: str | None
    characters: int  # length of the text


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """Yield a session with a read-only snapshot of the database."""
    with translate_errors(), engine.snapshot() as connection:
        run(connection, "raise_work_mem")
        yield connection


def count_corpus(connection: Connection, collection_id: CollectionId) -> CorpusCounts:
    """Count the documents of a collection, and the verdicts on them."""
    return run(connection, "count_corpus", collection_id=collection_id).one(CorpusCounts)


def _by_step(counts: Sequence[tuple[int, int]], steps: int) -> tuple[int, ...]:
    """Return the count of every step, from (step, count) of those that have documents; steps are numbered from 1."""
    count_of_step = dict(counts)
    return tuple(count_of_step.get(step, 0) for step in range(1, steps + 1))


@dataclass(frozen=True, slots=True)
class ReportPair(Evidence):
    """A stored pair in the report."""

    left_id: int
    right_id: int
    numbers_differ: bool
    cluster_id: int | None  # cluster of the left document
    verdict: str | None  # the verdict in force


@dataclass(frozen=True, slots=True)
class ReadText:
    """A document for display, with its text."""

    external_id: str
    title: str | None
    body: str | None  # the text, possibly only its beginning
    characters: int | None  # length of the whole text; None if there is no text
    source: str | None
    date: str | None
    url: str | None
    stale: bool  # whether the text has changed since it was compared


class ReportQueries(GenerationStatements):
    """The queries of the report on a generation."""

    def count_similarities(self, min_similarity: float, steps: int) -> Ints:
        """Count stored pairs in equal steps of similarity from `min_similarity` to 1.

        Returns int64 of shape (steps, 2): the number of pairs with equal numbers, and with different numbers. Pairs
        below `min_similarity` count in the first step.
        """
        counts = np.zeros((steps, 2), np.int64)
        rows = self.run("count_similarities", min_similarity=min_similarity, steps=steps).rows()
        for step, same_numbers, different_numbers in rows:
            counts[step] = same_numbers, different_numbers
        return counts

    def stream_cluster_facts(self) -> Iterator[ClusterFacts]:
        """Yield all clusters in no particular order; a caller that stops early must close the stream."""
        return self.stream(ClusterFacts, "read_cluster_facts")

    def read_cluster_details(self, cluster_ids: Sequence[int], members: int) -> dict[int, list[Member]]:
        """Return up to `members` members of each cluster: the survivor, then those that are least similar to it."""
        members_of: dict[int, list[Member]] = {}
        parameters = {"cluster_ids": packed_ids(list(cluster_ids)), "members": members}
        for cluster_id, *values in self.run("read_cluster_details", **parameters).rows():
            members_of.setdefault(cluster_id, []).append(Member(*values))
        return members_of

    def count_sources(self, collection_id: CollectionId, amount: int) -> tuple[list[SourceCount], int]:
        """Return the sources with the most clustered documents, None included, and the number of named sources."""
        rows = self.run("count_sources", collection_id=collection_id, amount=amount).rows()
        return [SourceCount(*row[:-1]) for row in rows], rows[0][-1] if rows else 0

    def count_copies(self, amount: int) -> tuple[list[Copies], int]:
        """Return the pairs of sources with the most pairs of documents, and the number of all pairs of sources."""
        rows = self.run("count_source_pairs", amount=amount).rows()
        return [Copies(*row[:-1]) for row in rows], rows[0][-1] if rows else 0

    def count_over_time(self, collection_id: CollectionId, steps: int, amount: int) -> OverTime | None:
        """Count documents and copies over time, and the most frequent pairs of sources; None if nothing has a date."""
        step_rows = self.run("count_over_time", collection_id=collection_id, steps=steps).rows()
        if not step_rows:
            return None

        # Each row ends with the beginning and the end of all steps together.
        *_, first, last, end = step_rows[0]
        origin_rows = self.run("count_origins", first=first, last=last, steps=steps, amount=amount).rows()
        origins = tuple(
            SourceOrigin(first_source, source, documents, delay, _by_step(counts, steps))
            for first_source, source, documents, delay, counts, _ in origin_rows
        )
        all_origins = origin_rows[0][-1] if origin_rows else 0
        return OverTime(end, tuple(TimeStep(*row[:3]) for row in step_rows), origins, all_origins)

    def read_timelines(self, cluster_ids: Sequence[int], steps: int) -> dict[int, Timeline]:
        """Return the timelines of those clusters that have dates, by cluster."""
        parameters = {"cluster_ids": packed_ids(list(cluster_ids)), "steps": steps}
        rows = self.run("read_cluster_timelines", **parameters).rows()
        return {cluster_id: Timeline(begin, _by_step(counts, steps)) for cluster_id, begin, counts in rows}

    def read_large_buckets(
        self, bucket_limit: int, amount: int, members: int
    ) -> tuple[list[Bucket], tuple[int, int, int]]:
        """Return the largest buckets with the titles of their first members, and totals over all buckets.

        The totals are the number of buckets with two or more members, the number of buckets over the limit, and the
        number of links that the limit leaves out.
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
        """Return a pair from each of equal steps of similarity from `min_similarity` to 1.

        Every call returns the same pairs.
        """
        parameters = {"min_similarity": min_similarity, "steps": steps}
        return self._pairs("sample_pairs_by_similarity", parameters)

    def read_texts(
        self, collection_id: CollectionId, doc_ids: Sequence[int], characters: int
    ) -> dict[int, ReadText]:
        """Return those documents that exist, by doc_id, with the first `characters` of their texts.

        Texts in an attached table are read directly if the user may read that table, otherwise by nearsim.bodies_of.
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
