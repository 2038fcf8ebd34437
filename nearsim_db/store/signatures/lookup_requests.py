"""Probes: texts that applications look up from SQL, answered by workers."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Literal, NamedTuple

from nearsim_db.records import CollectionId, Evidence, GenerationId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run

KEPT_SECONDS = 3600.0  # after the deadline


@dataclass(frozen=True, slots=True)
class Probe:
    """A text to look up; `profile` is optional if the collection has only one, or a default.

    The answer leaves the document with `external_id` out. With a purpose it has the buckets that an insertion locks,
    with "insert" or "locked" it also knows all documents that were committed before.
    """

    probe_id: int
    collection_id: CollectionId
    collection: str
    profile: str | None
    title: str | None
    body: str | None
    min_similarity: float
    max_matches: int | None
    external_id: str | None
    purpose: Literal["lock", "locked", "insert"] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The matches of a probe by doc_id and its buckets, or the error that prevented a lookup.

    `generation_id` was searched; None if there is no index. `snapshot` has the transactions whose documents it knows.
    """

    probe_id: int
    matches: Sequence[tuple[int, Evidence]] = ()
    error: str | None = None
    generation_id: GenerationId | None = None
    bucket_hashes: Sequence[int] | None = None
    snapshot: str | None = None


def take(connection: Connection, collection: str | None, batch: int) -> list[Probe]:
    """Lock the most urgent probes of one collection, or of all, until the transaction ends."""
    return run(connection, "take_probes", collection=collection, batch=batch).all(
        lambda *columns: Probe(*columns[:-2])  # the last two are the settings that the statement changes
    )


def answer(connection: Connection, answers: Sequence[Answer]) -> None:
    """Store the answers to probes that were taken, and notify listeners."""
    found = [(one.probe_id, *match) for one in answers for match in one.matches]
    names = (one.name for one in fields(Evidence))
    parameters = {
        "probe_ids": [one.probe_id for one in answers],
        "errors": [one.error for one in answers],
        "generation_ids": [one.generation_id for one in answers],
        # An array of arrays would have to be rectangular.
        "bucket_hashes": [_as_array(one.bucket_hashes) for one in answers],
        "snapshots": [one.snapshot for one in answers],
        "owners": [probe_id for probe_id, _, _ in found],
        "doc_ids": [doc_id for _, doc_id, _ in found],
    } | {name: [getattr(evidence, name) for _, _, evidence in found] for name in names}
    run(connection, "answer_probes", **parameters)
    connection.execute("NOTIFY nearsim")


def _as_array(hashes: Sequence[int] | None) -> str | None:
    return None if hashes is None else f"{{{','.join(map(str, hashes))}}}"


class Moment(NamedTuple):
    """A time of the server's clock, and the transactions that were committed then, as pg_snapshot."""

    at: datetime
    snapshot: str


def read_moment(connection: Connection) -> Moment:
    """Return the present moment."""
    return Moment(*run(connection, "read_snapshot").row())


def is_any_waiting(connection: Connection, collection: str | None) -> bool:
    """Whether a probe of a collection, or of any, waits for its answer."""
    return bool(run(connection, "has_waiting_probe", collection=collection).value())


def drop_old(connection: Connection) -> int:
    """Delete probes whose deadline passed an hour ago; return their number."""
    return run(connection, "delete_expired_probes", seconds=KEPT_SECONDS).count


def drop_all(connection: Connection, collection_id: CollectionId) -> int:
    """Delete all probes of a collection; return their number."""
    return run(connection, "purge_probes", collection_id=collection_id).count
