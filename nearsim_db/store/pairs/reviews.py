"""The review desk: queues of doubtful pairs, leases on these pairs, and decisions, which set verdicts, with undo."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from math import nextafter
from typing import Literal

from psycopg import errors as pg

from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.records import CollectionId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import StatementResult, run
from nearsim_db.store.pairs.review_documents import NamedDocument, ReviewedPair
from nearsim_db.store.pairs.verdicts import Pair, by_pair, change_verdicts, ends_of

LEASE_SECONDS = 600
_PAIRS_TRIED = 100
# These queues begin with the least similar pair.
_ASCENDING_QUEUES = ("threshold", "ties")

Answer = Literal["same", "different", "unsure", "skipped"]
# The answers that set a verdict.
_VERDICT_ANSWERS: tuple[Answer, ...] = ("same", "different")


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters for the pairs of a queue; None means no filter.

    Source, dates and text must each match at least one of the two documents.
    """

    min_similarity: float | None = None
    max_similarity: float | None = None
    source: str | None = None
    since: datetime | None = None  # published at this time or later
    until: datetime | None = None  # published before this time
    text: str | None = None  # a part of the title, of the id or of the text


@dataclass(frozen=True, slots=True)
class QueuedPair(ReviewedPair):
    """A pair of a queue."""

    left_id: int
    right_id: int
    left: str
    right: str
    left_title: str | None
    right_title: str | None
    left_source: str | None
    right_source: str | None
    seen_by: Sequence[str]  # reviewers to whom it was shown
    probability: float | None  # probability with which the queue sample drew it; None in other queues


@dataclass(frozen=True, slots=True)
class Progress:
    """A reviewer's decisions that were not undone, by answer."""

    same: int
    different: int
    unsure: int
    skipped: int
    median_seconds: float | None  # median time for a decision, over the last 200

    @property
    def decided(self) -> int:
        """The number of decisions, not counting skipped pairs."""
        return self.same + self.different + self.unsure


@dataclass(frozen=True, slots=True)
class DecidedRow:
    """A row of a decision: a pair, or a document to keep."""

    review_id: int
    left_id: int
    right_id: int
    answer: Answer | Literal["kept"]
    verdict_id: int | None  # the verdict that the decision set
    replaced_id: int | None  # the verdict that it replaced
    pin_id: int | None  # the choice of a document to keep
    queue: str

    @property
    def pair(self) -> Pair:
        """The two doc_ids."""
        return self.left_id, self.right_id


@dataclass(frozen=True, slots=True)
class ShortlistedDocument(NamedDocument):
    """A document that has an open pair with another document."""

    similarity: float
    numbers_differ: bool
    held_by: str | None  # another reviewer who is judging the pair now


@dataclass(frozen=True, slots=True)
class PairReview:
    """An entry in the history of a pair: who saw it, and the answer."""

    by: str  # name of the reviewer, with the database user in parentheses unless that is the caller
    answer: Answer | Literal["kept"] | None  # None if the reviewer only saw the pair
    why: str | None
    undone: bool
    at: datetime


def pair_of(doc_id: int, other_id: int) -> Pair:
    """Return two doc_ids with the smaller first."""
    return min(doc_id, other_id), max(doc_id, other_id)


def may_review(connection: Connection, collection_id: CollectionId) -> tuple[bool, str]:
    """Return whether the user may decide about pairs of a collection, and the user's name."""
    may, user = run(connection, "may_review", collection_id=collection_id).row()
    return bool(may), str(user)


@dataclass(frozen=True, slots=True)
class Desk:
    """The desk of a reviewer in a collection; a reviewer is a database user under a name. No method commits."""

    collection_id: CollectionId
    collection: str
    profile: str | None
    by: str
    lease_seconds: float = LEASE_SECONDS

    def queue(
        self,
        connection: Connection,
        queue: str,
        filters: Filters = Filters(),
        max_pairs: int = 50,
        *,
        unreviewed: bool = True,
    ) -> list[QueuedPair]:
        """Return the first pairs of a queue, the most doubtful first. Raises NotFoundError for an unknown queue."""
        parameters = {"queue": queue, "unreviewed": unreviewed, "max_pairs": max_pairs} | asdict(filters)
        try:
            return self._run(connection, "read_review_queue", **self._place, **parameters).all(QueuedPair)
        except pg.InvalidParameterValue as error:
            raise NotFoundError(str(error.diag.message_primary)) from error

    def count(self, connection: Connection, max_pairs: int = 1000) -> dict[str, tuple[int, bool]]:
        """Return, for each queue, the number of pairs, up to `max_pairs`, and whether these are all of its pairs."""
        rows = self._run(connection, "count_review_queues", **self._place, max_pairs=max_pairs).rows()
        return {queue: (pairs, is_complete and pairs < max_pairs) for queue, pairs, is_complete in rows}

    def look_further(self, connection: Connection, queue: str, filters: Filters) -> Filters | None:
        """Return filters for the part of a long queue that was not searched yet; None if all of it was searched."""
        bounds = {"min_similarity": filters.min_similarity, "max_similarity": filters.max_similarity}
        end = self._run(connection, "find_review_end", **self._place, queue=queue, **bounds).value()
        if end is None:
            return None

        # A search that begins and ends at the same similarity would repeat itself, so the remaining pairs of this
        # similarity are skipped.
        if queue in _ASCENDING_QUEUES:
            is_stuck = end == filters.min_similarity
            return replace(filters, min_similarity=nextafter(end, 2.0) if is_stuck else end)
        is_stuck = end == filters.max_similarity
        return replace(filters, max_similarity=nextafter(end, -2.0) if is_stuck else end)

    def lease(self, connection: Connection, queue: str, filters: Filters = Filters()) -> Pair | None:
        """Lease the next pair of a queue to this reviewer and return it; None if there is none.

        A pair that is already leased to the reviewer comes first, if it passes the filters.
        """
        leased = self._run(connection, "find_own_lease", queue=queue).rows()
        has_filters = filters != Filters()
        candidates: list[QueuedPair] = []
        if has_filters or not leased:
            candidates = self.queue(connection, queue, filters, _PAIRS_TRIED)
        if has_filters:
            passing = {(pair.left_id, pair.right_id) for pair in candidates}
            leased = [row for row in leased if row[:2] in passing]

        # Pairs that the reviewer has not seen come first.
        candidates.sort(key=lambda pair: self.by in pair.seen_by)
        rows = [(pair.left_id, pair.right_id, pair.probability) for pair in candidates]
        for left_id, right_id, probability in [*leased, *rows]:
            if self._take(connection, queue, {(left_id, right_id): probability}):
                return left_id, right_id
        return None

    def shortlist(
        self, connection: Connection, generation_id: int, doc_id: int, max_documents: int
    ) -> list[ShortlistedDocument]:
        """Return the documents that have an open pair with the document `doc_id`, the most similar first."""
        parameters = {"generation_id": generation_id, "doc_id": doc_id, "max_documents": max_documents}
        return self._run(connection, "read_shortlist", **parameters).all(ShortlistedDocument)

    def lease_document(
        self, connection: Connection, generation_id: int, queue: str, filters: Filters, max_documents: int
    ) -> tuple[int, list[ShortlistedDocument]] | None:
        """Return the next document of a queue with its shortlist, and lease the pairs of the shortlist.

        Of the two documents of the next pair, this is the one with more open pairs, or else the left one. Returns None
        if the queue has no pair.
        """
        pair = self.lease(connection, queue, filters)
        if pair is None:
            return None

        left, right = (self.shortlist(connection, generation_id, doc_id, max_documents) for doc_id in pair)
        doc_id, shortlist = (pair[0], left) if len(left) >= len(right) else (pair[1], right)
        free = [pair_of(doc_id, document.doc_id) for document in shortlist if document.held_by is None]
        self._take(connection, queue, dict.fromkeys(free))
        return doc_id, shortlist

    def _take(
        self, connection: Connection, queue: str, pairs: Mapping[Pair, float | None]
    ) -> dict[Pair, int]:
        """Lease pairs and store their probabilities; return their review_ids, except for pairs leased to others."""
        ends = ends_of(list(pairs))
        self._run(connection, "end_leases", **ends)
        lease = {"queue": queue, "lease_seconds": self.lease_seconds, "probabilities": list(pairs.values())}
        return by_pair(self._run(connection, "lease_pairs", **ends, **lease).rows())

    def release(self, connection: Connection) -> None:
        """End all leases of this reviewer."""
        self._run(connection, "release_leases")

    def decide(
        self,
        connection: Connection,
        queue: str,
        answers: Mapping[Pair, Answer],
        why: str = "",
        *,
        replaces: bool = False,
    ) -> None:
        """Decide pairs in one decision: same pins a pair, different vetoes it, and unsure and skipped set no verdict.

        Raises NotFoundError for a document that is not in the collection, and NearsimError for an invalid verdict.
        Raises ConflictError if somebody else has a lease on one of the pairs, or if one of them was decided meanwhile,
        unless `replaces` is True.
        """
        self._lock_documents(connection, answers)
        parameters = {**ends_of(list(answers)), "replaces": replaces}
        for holder, answer in self._run(connection, "find_holders", **parameters).rows():
            doing = f"already decided by {holder}: {answer}" if answer else f"being judged by {holder}"
            raise ConflictError(f"this pair is {doing}")

        # The reviewer's lease may have expired after the pair was shown, or somebody may have leased it after
        # find_holders.
        rows = self._take(connection, queue, dict.fromkeys(answers))
        if len(rows) < len(answers):
            raise ConflictError("this pair is being judged by somebody else")
        reason = why.strip() or None
        self._record(connection, rows, answers, reason, *self._judge(connection, answers, reason))

    def keep(self, connection: Connection, doc_id: int, why: str) -> None:
        """Choose a document to keep in its cluster, as one decision. Raises NotFoundError if it does not exist."""
        self._lock_documents(connection, [(doc_id, doc_id)])
        reason = why.strip() or None
        parameters = {"why": reason or "chosen at the review desk", "by": self.by}
        ((pin_id,),) = change_verdicts(connection, "keep_document", doc_id=doc_id, **parameters)
        rows = self._take(connection, "cluster", {(doc_id, doc_id): None})
        if not rows:
            raise ConflictError("somebody else is choosing this document")
        self._record(connection, rows, dict.fromkeys(rows, "kept"), reason, pin_id=pin_id)

    def _record(
        self,
        connection: Connection,
        rows: Mapping[Pair, int],
        answers: Mapping[Pair, str],
        why: str | None,
        replaced: Mapping[Pair, int] = {},
        verdict_ids: Mapping[Pair, int] = {},
        pin_id: int | None = None,
    ) -> None:
        """Record a decision in its rows, which are the leases, and end all leases of this reviewer."""
        self._run(
            connection,
            "record_decision",
            review_ids=[rows[pair] for pair in answers],
            answers=list(answers.values()),
            why=why,
            decision_id=min(rows.values()),
            verdict_ids=[verdict_ids.get(pair) for pair in answers],
            replaced_ids=[replaced.get(pair) for pair in answers],
            pin_id=pin_id,
        )
        self.release(connection)

    def _judge(
        self, connection: Connection, answers: Mapping[Pair, Answer], why: str | None
    ) -> tuple[dict[Pair, int], dict[Pair, int]]:
        """Set the verdicts of answers; return the replaced verdict_ids and the new verdict_ids, each by pair."""
        ends = ends_of([pair for pair, answer in answers.items() if answer in _VERDICT_ANSWERS])
        replaced = by_pair(self._run(connection, "lock_current_verdicts", **ends).rows())

        # The default reason names the answer, so each answer needs its own statement.
        verdict_ids: dict[Pair, int] = {}
        for verdict_answer in _VERDICT_ANSWERS:
            pairs = [pair for pair, answer in answers.items() if answer == verdict_answer]
            if not pairs:
                continue
            parameters = {
                "answers": [verdict_answer] * len(pairs),
                "why": why or f"reviewed: {verdict_answer}",
                "by": self.by,
            }
            rows = change_verdicts(connection, "set_verdicts", **ends_of(pairs), **parameters)
            verdict_ids |= by_pair(rows)
        return replaced, verdict_ids

    def undo(self, connection: Connection) -> list[DecidedRow]:
        """Undo the last decision of this reviewer that was not undone yet, and return its rows.

        Only the last fifty decisions are considered; returns no rows if all of them were undone. The verdicts that the
        decision replaced are set again, with their author and reason. If somebody has replaced or undone a verdict of
        the decision since, the pair remains as it is.
        """
        rows = self._run(connection, "lock_last_decision").all(DecidedRow)
        ends = ends_of([row.pair for row in rows if row.verdict_id is not None])
        current = by_pair(self._run(connection, "lock_current_verdicts", **ends).rows())

        unchanged = [row for row in rows if row.verdict_id and current.get(row.pair) == row.verdict_id]
        pairs = [row.pair for row in unchanged]
        self._lock_documents(connection, pairs)
        parameters = {"why": "undone at the review desk", "by": self.by, "collection_id": self.collection_id}
        replaced_ids = [row.replaced_id for row in unchanged]
        change_verdicts(
            connection, "undo_verdicts", **ends_of(pairs), replaced_ids=replaced_ids, **parameters
        )

        pin_ids = [row.pin_id for row in rows if row.pin_id is not None]
        self._run(connection, "undo_keeps", pin_ids=pin_ids, why=parameters["why"])
        self._run(connection, "record_undo", review_ids=[row.review_id for row in rows])
        return rows

    def sampled(self, connection: Connection, generation_id: int) -> list[tuple[float, bool, float]]:
        """Return the decided pairs of the queue sample as (similarity, whether same, probability with which drawn)."""
        return self._run(connection, "read_sampled", generation_id=generation_id).rows()

    def progress(self, connection: Connection) -> Progress:
        """Count the decisions of this reviewer that were not undone."""
        return self._run(connection, "read_review_progress").one(Progress)

    def reviews(self, connection: Connection, left_id: int, right_id: int) -> list[PairReview]:
        """Return who saw and decided a pair, the latest first."""
        parameters = {"left_id": left_id, "right_id": right_id}
        return self._run(connection, "read_pair_reviews", **parameters).all(PairReview)

    def _lock_documents(self, connection: Connection, pairs: Iterable[Pair]) -> None:
        """Lock documents so that they remain in the collection until the transaction ends.

        Raises NotFoundError for a document that is not in the collection. Must be called before functions that store
        verdicts, because these determine the collection from the document.
        """
        doc_ids = {doc_id for pair in pairs for doc_id in pair}
        missing = doc_ids.difference(self._run(connection, "lock_documents", doc_ids=list(doc_ids)).values())
        if missing:
            raise NotFoundError(f"there is no document {min(missing)} in this collection")

    def _run(self, connection: Connection, command: str, /, **parameters: object) -> StatementResult:
        """Run a statement for this desk's collection and reviewer."""
        return run(connection, command, collection_id=self.collection_id, by=self.by, **parameters)

    @property
    def _place(self) -> dict[str, object]:
        return {"collection": self.collection, "profile": self.profile}
