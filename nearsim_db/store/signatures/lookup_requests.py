"""Lookup requests: texts that applications look up with nearsim.ask() in SQL, and the answers of workers.

A request is a row of nearsim.probe, and a `Probe` in this module. Its purpose says what the application does with the
answer:

- None: the application only reads the matches.
- insert: the application asks before its transaction, in which check_insert then locks the buckets of the answer.
- lock: check_insert asks within the transaction, to learn which buckets it has to lock.
- locked: check_insert asks again after it has taken these locks.

An answer to insert or locked takes into account every document that was committed before a worker began to answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Literal, NamedTuple

from nearsim_db.records import CollectionId, Evidence, GenerationId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run

_KEPT_AFTER_DEADLINE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Probe:
    """A text to look up.

    If the request has a purpose, the answer includes the buckets that an insertion locks.
    """

    probe_id: int
    collection_id: CollectionId
    collection: str
    profile: str | None  # None for the profile named default, or the only profile
    title: str | None
    body: str | None
    min_similarity: float
    max_matches: int | None
    external_id: str | None  # id of the document that the answer leaves out
    purpose: Literal["lock", "locked", "insert"] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The matches and buckets of a probe, or the error that prevented a lookup."""

    probe_id: int
    matches: Sequence[tuple[int, Evidence]] = ()  # doc_id and evidence of each match
    error: str | None = None
    generation_id: GenerationId | None = None  # generation that was searched; None if there is no index
    bucket_hashes: Sequence[int] | None = None  # buckets of the text; None without a purpose
    snapshot: str | None = None  # pg_snapshot: the transactions whose documents the answer takes into account


def take(connection: Connection, collection: str | None, batch: int) -> list[Probe]:
    """Lock up to `batch` of the most urgent probes of a collection, or of all, until the transaction ends."""
    rows = run(connection, "take_probes", collection=collection, batch=batch).rows()
    # The last two columns are the results of set_config.
    return [Probe(*columns[:-2]) for columns in rows]


def answer(connection: Connection, answers: Sequence[Answer]) -> None:
    """Store the answers to probes that this transaction has taken, and notify listeners."""
    matches = [(answer.probe_id, *match) for answer in answers for match in answer.matches]
    parameters: dict[str, object] = {
        "probe_ids": [answer.probe_id for answer in answers],
        "errors": [answer.error for answer in answers],
        "generation_ids": [answer.generation_id for answer in answers],
        "bucket_hashes": [_array_literal(answer.bucket_hashes) for answer in answers],
        "snapshots": [answer.snapshot for answer in answers],
        "owners": [probe_id for probe_id, _, _ in matches],
        "doc_ids": [doc_id for _, doc_id, _ in matches],
    }

    for field in fields(Evidence):
        parameters[field.name] = [getattr(evidence, field.name) for _, _, evidence in matches]
    run(connection, "answer_probes", **parameters)

    # PostgreSQL delivers the notification at the commit, when the answers become visible.
    connection.execute("NOTIFY nearsim")


def _array_literal(hashes: Sequence[int] | None) -> str | None:
    """Format an array as text: answers have arrays of different lengths, which an array of arrays cannot contain."""
    return None if hashes is None else f"{{{','.join(map(str, hashes))}}}"


class Moment(NamedTuple):
    """A moment on the server."""

    at: datetime  # time of the server's clock
    snapshot: str  # pg_snapshot: which transactions are committed at that time


def read_moment(connection: Connection) -> Moment:
    """Return the present moment on the server."""
    return Moment(*run(connection, "read_snapshot").row())


def is_any_waiting(connection: Connection, collection: str | None) -> bool:
    """Whether any probe of a collection, or of all, waits for its answer."""
    return bool(run(connection, "has_waiting_probe", collection=collection).value())


def drop_old(connection: Connection) -> int:
    """Delete probes whose deadline passed an hour ago; return their number."""
    return run(connection, "delete_expired_probes", seconds=_KEPT_AFTER_DEADLINE_SECONDS).count


def drop_all(connection: Connection, collection_id: CollectionId) -> int:
    """Delete all probes of a collection; return their number."""
    return run(connection, "purge_probes", collection_id=collection_id).count
