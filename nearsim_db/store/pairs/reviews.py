"""The review desk: queues of doubtful pairs, leases on them, and decisions, which are verdicts, with undo."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from math import nextafter
from typing import Literal

from psycopg import errors as pg

from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.records import CollectionId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import Result, run
from nearsim_db.store.pairs.review_documents import NamedDocument, ReviewedPair
from nearsim_db.store.pairs.verdicts import Pair, by_pair, change_verdicts, ends_of

LEASE_SECONDS = 600
_TRIED_AT_ONCE = 100
_ASCENDING = ("threshold", "ties")  # queues that begin with the least similar pair

Answer = Literal["same", "different", "unsure", "skipped"]
_JUDGING: tuple[Answer, ...] = ("same", "different")


@dataclass(frozen=True, slots=True)
class Filters:
    """Which pairs of a queue are shown; None for all.

    `source` and `text`, a part of the title, id or text, are those of either document, as its publication from `since`
    to before `until`.
    """

    min_similarity: float | None = None
    max_similarity: float | None = None
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class QueuedPair(ReviewedPair):
    """A pair of a queue; `seen_by` are the reviewers it was shown to, `probability` is that of the queue sample."""

    left_id: int
    right_id: int
    left: str
    right: str
    left_title: str | None
    right_title: str | None
    left_source: str | None
    right_source: str | None
    seen_by: Sequence[str]
    probability: float | None


@dataclass(frozen=True, slots=True)
class Progress:
    """Decisions in force of a reviewer by answer, and the median time of the last 200 of them."""

    same: int
    different: int
    unsure: int
    skipped: int
    median_seconds: float | None

    @property
    def decided(self) -> int:
        """Number of decisions, skipped items not counted."""
        return self.same + self.different + self.unsure


@dataclass(frozen=True, slots=True)
class DecidedRow:
    """A row of a decision: a pair with the verdict set on it and the verdict that this replaced, or a document kept."""

    review_id: int
    left_id: int
    right_id: int
    answer: Answer | Literal["kept"]
    verdict_id: int | None
    replaced_id: int | None
    pin_id: int | None
    queue: str

    @property
    def pair(self) -> Pair:
        """The two doc_ids."""
        return self.left_id, self.right_id


@dataclass(frozen=True, slots=True)
class Listed(NamedDocument):
    """A document that is paired with another, their open pair, and who else is judging that now."""

    similarity: float
    numbers_differ: bool
    held_by: str | None


@dataclass(frozen=True, slots=True)
class PairReview:
    """Who saw a pair, and what they answered, None if they only saw it."""

    by: str  # with the database user in parentheses if that is not the caller
    answer: Answer | Literal["kept"] | None
    why: str | None
    undone: bool
    at: datetime


def pair_of(one: int, other: int) -> Pair:
    """Return two doc_ids, the smaller first."""
    return min(one, other), max(one, other)


def may_review(connection: Connection, collection_id: CollectionId) -> tuple[bool, str]:
    """Return whether the user may decide about pairs of a collection, and the user's name."""
    may, user = run(connection, "may_review", collection_id=collection_id).row()
    return bool(may), str(user)


@dataclass(frozen=True, slots=True)
class Desk:
    """The desk of one reviewer: of a database user under a name, in one collection. No method commits."""

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
        most: int = 50,
        *,
        unreviewed: bool = True,
    ) -> list[QueuedPair]:
        """Return the first pairs of a queue, the most doubtful first. Raises NotFoundError for an unknown queue."""
        parameters = {"queue": queue, "unreviewed": unreviewed, "max_pairs": most} | asdict(filters)
        try:
            return self._run(connection, "read_review_queue", **self._place, **parameters).all(QueuedPair)
        except pg.InvalidParameterValue as error:
            raise NotFoundError(str(error.diag.message_primary)) from error

    def count(self, connection: Connection, most: int = 1000) -> dict[str, tuple[int, bool]]:
        """Return the number of pairs that each queue has left, and whether that is all: it looked to its end."""
        rows = self._run(connection, "count_review_queues", **self._place, max_pairs=most).rows()
        return {queue: (pairs, is_complete and pairs < most) for queue, pairs, is_complete in rows}

    def look_further(self, connection: Connection, queue: str, filters: Filters) -> Filters | None:
        """Return filters for the part of a long queue that was not looked at; None if it was looked at to its end."""
        given = {"min_similarity": filters.min_similarity, "max_similarity": filters.max_similarity}
        end = self._run(connection, "find_review_end", **self._place, queue=queue, **given).value()
        if end is None:
            return None
        if queue in _ASCENDING:
            # Of more equal similarities than are looked at, the others are passed over.
            is_stuck = end == filters.min_similarity
            return replace(filters, min_similarity=nextafter(end, 2.0) if is_stuck else end)
        is_stuck = end == filters.max_similarity
        return replace(filters, max_similarity=nextafter(end, -2.0) if is_stuck else end)

    def lease(self, connection: Connection, queue: str, filters: Filters = Filters()) -> Pair | None:
        """Return the next pair of a queue, leased to this reviewer; None if there is none.

        That is the first pair of the reviewer's present leases, if the filters let it pass, until it is decided or
        released.
        """
        own = self._run(connection, "find_own_lease", queue=queue).rows()
        is_free = filters == Filters()
        found = [] if own and is_free else self.queue(connection, queue, filters, _TRIED_AT_ONCE)
        if not is_free:
            listed_pairs = {(one.left_id, one.right_id) for one in found}
            own = [row for row in own if row[:2] in listed_pairs]
        fresh_first = sorted(found, key=lambda one: self.by in one.seen_by)
        listed = [(one.left_id, one.right_id, one.probability) for one in fresh_first]
        for left_id, right_id, probability in [*own, *listed]:
            if self._take(connection, queue, {(left_id, right_id): probability}):
                return left_id, right_id
        return None

    def shortlist(self, connection: Connection, generation_id: int, doc_id: int, most: int) -> list[Listed]:
        """Return the documents of a document's open pairs, the most similar first."""
        parameters = {"generation_id": generation_id, "doc_id": doc_id, "most": most}
        return self._run(connection, "read_shortlist", **parameters).all(Listed)

    def lease_document(
        self, connection: Connection, generation_id: int, queue: str, filters: Filters, most: int
    ) -> tuple[int, list[Listed]] | None:
        """Return the next document of a queue with its shortlist, whose pairs are leased; None if there is none.

        Of the two documents of the next pair that is the one with more open pairs, or the left one.
        """
        pair = self.lease(connection, queue, filters)
        if pair is None:
            return None
        left, right = (self.shortlist(connection, generation_id, one, most) for one in pair)
        doc_id, listed = (pair[0], left) if len(left) >= len(right) else (pair[1], right)
        free = [pair_of(doc_id, one.doc_id) for one in listed if one.held_by is None]
        self._take(connection, queue, dict.fromkeys(free))
        return doc_id, listed

    def _take(
        self, connection: Connection, queue: str, pairs: Mapping[Pair, float | None]
    ) -> dict[Pair, int]:
        """Lease pairs, with their probabilities; return the numbers of their rows but of those leased to others."""
        ends = ends_of(list(pairs))
        self._run(connection, "end_leases", **ends)
        more = {"queue": queue, "lease_seconds": self.lease_seconds, "probabilities": list(pairs.values())}
        taken = self._run(connection, "lease_pairs", **ends, **more).rows()
        return {(left_id, right_id): review_id for left_id, right_id, review_id in taken}

    def release(self, connection: Connection) -> None:
        """Give back what this reviewer was shown and did not decide."""
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
        """Decide pairs as one decision: same pins, different vetoes, unsure and skipped set no verdict.

        Raises NotFoundError for a document that is not in the collection, ConflictError if somebody else has a lease on
        one of the pairs or, unless this `replaces` decisions, one was decided meanwhile; NearsimError if a verdict is
        not possible.
        """
        self._lock_documents(connection, answers)
        given = {**ends_of(list(answers)), "replaces": replaces}
        for holder, decided in self._run(connection, "find_holders", **given).rows():
            doing = f"already decided by {holder}: {decided}" if decided else f"being judged by {holder}"
            raise ConflictError(f"this pair is {doing}")
        rows = self._take(connection, queue, dict.fromkeys(answers))
        if len(rows) < len(answers):
            raise ConflictError("this pair is being judged by somebody else")
        reason = why.strip() or None
        self._record(connection, rows, answers, reason, *self._judge(connection, answers, reason))

    def keep(self, connection: Connection, doc_id: int, why: str) -> None:
        """Choose a document to keep in its cluster, as one decision. Raises NotFoundError."""
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
        made: Mapping[Pair, int] = {},
        pin_id: int | None = None,
    ) -> None:
        """Record a decision on the rows of its leases, and end all leases of this reviewer."""
        self._run(
            connection,
            "record_decision",
            review_ids=[rows[pair] for pair in answers],
            answers=list(answers.values()),
            why=why,
            decision_id=min(rows.values()),
            verdict_ids=[made.get(pair) for pair in answers],
            replaced_ids=[replaced.get(pair) for pair in answers],
            pin_id=pin_id,
        )
        self.release(connection)

    def _judge(
        self, connection: Connection, answers: Mapping[Pair, Answer], why: str | None
    ) -> tuple[dict[Pair, int], dict[Pair, int]]:
        """Set the verdicts of answers; return the numbers of those replaced and of those set, by pair."""
        ends = ends_of([pair for pair, answer in answers.items() if answer in _JUDGING])
        replaced = by_pair(self._run(connection, "lock_current_verdicts", **ends).rows())
        made: dict[Pair, int] = {}
        for answer in _JUDGING:
            pairs = [pair for pair, given in answers.items() if given == answer]
            if not pairs:
                continue
            parameters = {"why": why or f"reviewed: {answer}", "by": self.by}
            answered = {"answers": [answer] * len(pairs)}
            made |= by_pair(
                change_verdicts(connection, "set_verdicts", **ends_of(pairs), **answered, **parameters)
            )
        return replaced, made

    def undo(self, connection: Connection) -> list[DecidedRow]:
        """Undo this reviewer's last decision in force, of the last fifty; return its rows, none if there is none.

        The verdicts that it replaced are set again, with their author and reason. A verdict that somebody replaced or
        undid since is left as it is.
        """
        rows = self._run(connection, "lock_last_decision").all(DecidedRow)
        ends = ends_of([(row.left_id, row.right_id) for row in rows if row.verdict_id is not None])
        current = by_pair(self._run(connection, "lock_current_verdicts", **ends).rows())
        own = [row for row in rows if row.verdict_id and current.get(row.pair) == row.verdict_id]
        pairs = [row.pair for row in own]
        self._lock_documents(connection, pairs)
        parameters = {"why": "undone at the review desk", "by": self.by, "collection_id": self.collection_id}
        replaced = [row.replaced_id for row in own]
        change_verdicts(connection, "undo_verdicts", **ends_of(pairs), replaced_ids=replaced, **parameters)
        pin_ids = [row.pin_id for row in rows if row.pin_id is not None]
        self._run(connection, "undo_keeps", pin_ids=pin_ids, why=parameters["why"])
        self._run(connection, "record_undo", review_ids=[row.review_id for row in rows])
        return rows

    def sampled(self, connection: Connection, generation_id: int) -> list[tuple[float, bool, float]]:
        """Return similarity, whether it is the same, and probability of each decided pair of the queue sample."""
        return self._run(connection, "read_sampled", generation_id=generation_id).rows()

    def progress(self, connection: Connection) -> Progress:
        """Count this reviewer's decisions in force."""
        return self._run(connection, "read_review_progress").one(Progress)

    def reviews(self, connection: Connection, left_id: int, right_id: int) -> list[PairReview]:
        """Return who saw and decided a pair, latest first."""
        parameters = {"left_id": left_id, "right_id": right_id}
        return self._run(connection, "read_pair_reviews", **parameters).all(PairReview)

    def _lock_documents(self, connection: Connection, pairs: Iterable[Pair]) -> None:
        """Keep documents in the collection until the transaction ends. Raises NotFoundError for one that is not in it.

        Functions that store verdicts find the collection by the document, so this comes before them.
        """
        doc_ids = {doc_id for pair in pairs for doc_id in pair}
        missing = doc_ids.difference(self._run(connection, "lock_documents", doc_ids=list(doc_ids)).values())
        if missing:
            raise NotFoundError(f"there is no document {min(missing)} in this collection")

    def _run(self, connection: Connection, command: str, /, **parameters: object) -> Result:
        """Run a statement of this desk's collection and name."""
        return run(connection, command, collection_id=self.collection_id, by=self.by, **parameters)

    @property
    def _place(self) -> dict[str, object]:
        return {"collection": self.collection, "profile": self.profile}
