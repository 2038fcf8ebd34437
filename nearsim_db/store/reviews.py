"""The review desk: queues of doubtful pairs, leases on them, and decisions, which are verdicts, with undo."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from psycopg import errors as pg

from nearsim_db.errors import ConflictError, NearsimError, NotFoundError
from nearsim_db.records import CollectionId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run

LEASE_SECONDS = 600
_TRIED_AT_ONCE = 20

Answer = Literal["same", "different", "unsure", "skipped"]
_VERDICT_OF: dict[Answer, str] = {"same": "pin_documents", "different": "veto_documents"}
_STATEMENT_OF_VERDICT = {"pinned": "pin_documents", "vetoed": "veto_documents"}


@dataclass(frozen=True, slots=True)
class Filters:
    """Which pairs of a queue are shown; None for all.

    `source` and `text`, a part of the title or id, are those of either document, as its publication from `since` to
    before `until`.
    """

    min_similarity: float | None = None
    max_similarity: float | None = None
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class QueuedPair:
    """A pair of a queue; `seen_by` are the reviewers it was shown to, `probability` is that of the queue sample."""

    left_id: int
    right_id: int
    left: str
    right: str
    left_title: str | None
    right_title: str | None
    left_source: str | None
    right_source: str | None
    similarity: float
    intersection: int | None
    union: int | None
    estimate: float
    shared_bands: int
    numbers_differ: bool
    verdict: str | None
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
    """A row of a decision: a pair, the verdict set on it and the verdict that this replaced."""

    review_id: int
    left_id: int
    right_id: int
    answer: Answer
    verdict_id: int | None
    replaced_id: int | None
    queue: str


@dataclass(frozen=True, slots=True)
class ShownDocument:
    """A document for display: `body` may be cut, `characters` is its full length, None without a text."""

    doc_id: int
    external_id: str
    title: str | None
    body: str | None
    characters: int | None
    source: str | None
    url: str | None
    date: str | None


@dataclass(frozen=True, slots=True)
class StoredPair:
    """A stored pair of the live generation, twins expanded."""

    similarity: float
    intersection: int | None
    union: int | None
    estimate: float
    shared_bands: int
    numbers_differ: bool
    verdict: str | None
    are_twins: bool


@dataclass(frozen=True, slots=True)
class PairReview:
    """Who saw a pair, and what they answered, None if they only saw it."""

    reviewer: str
    answer: Answer | None
    why: str | None
    undone: bool
    at: datetime


def may_review(connection: Connection, collection_id: CollectionId) -> tuple[bool, str]:
    """Return whether the user may decide about pairs of a collection, and the user's name."""
    may, user = run(connection, "may_review", collection_id=collection_id).row()
    return bool(may), str(user)


@dataclass(frozen=True, slots=True)
class Desk:
    """The desk of one reviewer. No method commits."""

    collection_id: CollectionId
    collection: str
    profile: str | None
    reviewer: str
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
            return run(connection, "read_review_queue", **self._place, **parameters).all(QueuedPair)
        except pg.InvalidParameterValue as error:
            raise NotFoundError(str(error.diag.message_primary)) from error

    def count(self, connection: Connection, most: int = 1000) -> dict[str, int]:
        """Return the number of pairs that each queue has left, counted up to `most`."""
        return dict(run(connection, "count_review_queues", **self._place, max_pairs=most).rows())

    def lease(
        self, connection: Connection, queue: str, filters: Filters = Filters()
    ) -> tuple[int, int] | None:
        """Return the next pair of a queue, leased to this reviewer; None if there is none.

        That is the pair of the reviewer's present lease until it is decided or released.
        """
        own = run(connection, "find_own_lease", **self._who, queue=queue).rows()
        for left_id, right_id, probability in own:
            if self._take(connection, queue, left_id, right_id, probability) is not None:
                return left_id, right_id
        for pair in self.queue(connection, queue, filters, _TRIED_AT_ONCE):
            if self._take(connection, queue, pair.left_id, pair.right_id, pair.probability) is not None:
                return pair.left_id, pair.right_id
        return None

    def _take(
        self, connection: Connection, queue: str, left_id: int, right_id: int, probability: float | None
    ) -> int | None:
        """Lease a pair; return the number of its row, or None if somebody else has a lease on it."""
        pair = {"collection_id": self.collection_id, "left_id": left_id, "right_id": right_id}
        run(connection, "end_leases", **pair)
        more = {"queue": queue, "lease_seconds": self.lease_seconds, "probability": probability}
        found = run(connection, "lease_pair", reviewer=self.reviewer, **pair, **more).value()
        return None if found is None else int(found)

    def release(self, connection: Connection) -> None:
        """Give back what this reviewer was shown and did not decide."""
        run(connection, "release_leases", **self._who)

    def decide(
        self, connection: Connection, queue: str, left_id: int, right_id: int, answer: Answer, why: str = ""
    ) -> None:
        """Decide a pair: same pins it, different vetoes it, unsure and skipped set no verdict.

        Raises ConflictError if somebody else has a lease on it or it was decided meanwhile, NearsimError if a verdict
        is not possible.
        """
        pair = {"left_id": left_id, "right_id": right_id}
        held = run(connection, "find_review", **self._who, **pair).rows()
        for reviewer, decided in held:
            doing = f"already decided by {reviewer}: {decided}" if decided else f"being judged by {reviewer}"
            raise ConflictError(f"this pair is {doing}")
        review_id = self._take(connection, queue, left_id, right_id, None)
        if review_id is None:
            raise ConflictError("this pair is being judged by somebody else")
        replaced_id = verdict_id = None
        if answer in _VERDICT_OF:
            replaced_id = run(connection, "lock_current_verdict", **pair).value()
            reason = why.strip() or f"reviewed: {answer}"
            verdict_id = self._set(connection, _VERDICT_OF[answer], reason, self.reviewer, pair)
        run(
            connection,
            "record_decision",
            review_id=review_id,
            answer=answer,
            why=why.strip() or None,
            decision_id=review_id,
            verdict_id=verdict_id,
            replaced_id=replaced_id,
        )

    def undo(self, connection: Connection) -> list[DecidedRow]:
        """Undo this reviewer's last decision in force, of the last fifty; return its rows, none if there is none.

        The verdicts that it replaced are set again, with their author and reason. A verdict that somebody replaced or
        undid since is left as it is.
        """
        rows = run(connection, "lock_last_decision", **self._who).all(DecidedRow)
        for row in rows:
            pair = {"left_id": row.left_id, "right_id": row.right_id}
            current = run(connection, "lock_current_verdict", **pair).value() if row.verdict_id else None
            if current is not None and current == row.verdict_id:
                self._set(connection, "undo_documents", "undone at the review desk", self.reviewer, pair)
                self._restore(connection, row, pair)
            run(connection, "record_undo", review_id=row.review_id)
        return rows

    def _restore(self, connection: Connection, row: DecidedRow, pair: dict[str, int]) -> None:
        if row.replaced_id is None:
            return
        for verdict, by, why, _ in run(connection, "read_verdict", verdict_id=row.replaced_id).rows():
            self._set(connection, _STATEMENT_OF_VERDICT[verdict], why, by, pair)

    def _set(self, connection: Connection, name: str, why: str, by: str, pair: dict[str, int]) -> int:
        try:
            return int(run(connection, name, why=why, by=by, **pair).value())
        except pg.NoDataFound as error:
            raise NotFoundError(str(error.diag.message_primary)) from error
        except pg.InvalidParameterValue as error:
            raise NearsimError(str(error.diag.message_primary)) from error

    def progress(self, connection: Connection) -> Progress:
        """Count this reviewer's decisions in force."""
        return run(connection, "read_review_progress", **self._who).one(Progress)

    def documents(
        self, connection: Connection, doc_ids: Sequence[int], characters: int
    ) -> dict[int, ShownDocument]:
        """Return existing documents of the collection, with at most so many characters of their texts."""
        parameters = {"doc_ids": list(doc_ids), "characters": characters, "collection_id": self.collection_id}
        found = run(connection, "read_review_document", **parameters).all(ShownDocument)
        return {one.doc_id: one for one in found}

    def pair(self, connection: Connection, profile: str, left_id: int, right_id: int) -> StoredPair | None:
        """Return the stored pair of two documents; None if they are no pair."""
        pair = {"left_id": left_id, "right_id": right_id}
        return run(
            connection, "read_review_pair", collection_id=self.collection_id, profile=profile, **pair
        ).first(StoredPair)

    def reviews(self, connection: Connection, left_id: int, right_id: int) -> list[PairReview]:
        """Return who saw and decided a pair, latest first."""
        pair = {"left_id": left_id, "right_id": right_id, "collection_id": self.collection_id}
        return run(connection, "read_pair_reviews", **pair).all(PairReview)

    @property
    def _who(self) -> dict[str, object]:
        return {"collection_id": self.collection_id, "reviewer": self.reviewer}

    @property
    def _place(self) -> dict[str, object]:
        return {"collection": self.collection, "profile": self.profile, "reviewer": self.reviewer}
