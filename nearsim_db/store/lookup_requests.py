"""Probes: texts that applications look up from SQL, answered by workers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nearsim_db.records import CollectionId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.rows import fetch_all, fetch_value
from nearsim_db.store.driver.statements import statement

KEPT_SECONDS = 3600.0  # after the deadline


@dataclass(frozen=True, slots=True)
class Probe:
    """A text to look up; `profile` is optional if the collection has only one, or a default."""

    probe_id: int
    collection_id: CollectionId
    collection: str
    profile: str | None
    title: str | None
    body: str | None
    min_similarity: float
    max_matches: int | None


@dataclass(frozen=True, slots=True)
class ProbeMatch:
    """A document found for a probe."""

    doc_id: int
    similarity: float
    estimate: float
    shared_bands: int
    intersection: int | None
    union: int | None
    distance: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The matches of a probe, or the error that prevented a lookup."""

    probe_id: int
    matches: Sequence[ProbeMatch] = ()
    error: str | None = None


def take(connection: Connection, collection: str | None, batch: int) -> list[Probe]:
    """Lock the most urgent probes of one collection, or of all, until the transaction ends."""
    parameters = {"collection": collection, "batch": batch}
    return fetch_all(connection, _probe, statement("take_probes"), parameters)


def _probe(*columns: Any) -> Probe:
    # The last two columns are the settings that the statement changes.
    return Probe(*columns[:-2])


def answer(connection: Connection, answers: Sequence[Answer]) -> None:
    """Store the answers to probes that were taken, and notify listeners."""
    found = [(one.probe_id, match) for one in answers for match in one.matches]
    parameters = {
        "probe_ids": [one.probe_id for one in answers],
        "errors": [one.error for one in answers],
        "owners": [probe_id for probe_id, _ in found],
        "doc_ids": [match.doc_id for _, match in found],
        "similarities": [match.similarity for _, match in found],
        "estimates": [match.estimate for _, match in found],
        "shared_bands": [match.shared_bands for _, match in found],
        "intersections": [match.intersection for _, match in found],
        "unions": [match.union for _, match in found],
        "distances": [match.distance for _, match in found],
    }
    connection.execute(statement("answer_probes"), parameters)
    connection.execute("NOTIFY nearsim")


def is_any_waiting(connection: Connection, collection: str | None) -> bool:
    """Whether a probe of a collection, or of any, waits for its answer."""
    return bool(fetch_value(connection, statement("has_waiting_probe"), {"collection": collection}))


def drop_old(connection: Connection) -> int:
    """Delete probes whose deadline passed an hour ago; return their number."""
    return connection.execute(statement("delete_expired_probes"), {"seconds": KEPT_SECONDS}).rowcount


def drop_all(connection: Connection, collection_id: CollectionId) -> int:
    """Delete all probes of a collection; return their number."""
    return connection.execute(statement("purge_probes"), {"collection_id": collection_id}).rowcount
