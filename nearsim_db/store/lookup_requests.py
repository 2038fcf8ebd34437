"""Probes: texts that applications ask about from SQL, and the answers of workers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection

from nearsim_db.records import CollectionId
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import statement

KEPT_SECONDS = 3600.0  # after the deadline


@dataclass(frozen=True, slots=True)
class Probe:
    """A text that somebody asks about; `profile` may be left out where the collection has one, or a default."""

    probe_id: int
    collection_id: CollectionId
    collection: str
    profile: str | None
    title: str | None
    body: str | None
    min_similarity: float


_Row = tuple[int, CollectionId, str, str | None, str | None, str | None, float]


@dataclass(frozen=True, slots=True)
class ProbeMatch:
    """A document that was found."""

    doc_id: int
    similarity: float
    estimate: float
    shared_bands: int
    intersection: int | None
    union: int | None
    distance: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found for a probe, or the error for which nothing could be."""

    probe_id: int
    matches: Sequence[ProbeMatch] = ()
    error: str | None = None


def take(connection: Connection, collection: str | None, batch: int) -> list[Probe]:
    """The most urgent probes of one collection, or of all; nobody else takes them before this transaction ends."""
    parameters = {"collection": collection, "batch": batch}
    rows = driver(connection).execute(statement("take_probes"), parameters).fetchall()
    return [Probe(*cast(_Row, row[:7])) for row in rows]


def answer(connection: Connection, answers: Sequence[Answer]) -> None:
    """Write the answers to probes that were taken, and tell whoever listens that there are some."""
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
    driver(connection).execute(statement("answer_probes"), parameters)
    driver(connection).execute("NOTIFY nearsim")


def is_any_waiting(connection: Connection, collection: str | None) -> bool:
    """Whether a probe of a collection, or of any, waits for its answer."""
    row = driver(connection).execute(statement("has_waiting_probe"), {"collection": collection}).fetchone()
    return row is not None and bool(row[0])


def drop_old(connection: Connection) -> int:
    """Drop probes whose deadline is an hour over; returns how many."""
    return driver(connection).execute(statement("delete_expired_probes"), {"seconds": KEPT_SECONDS}).rowcount


def drop_all(connection: Connection, collection_id: CollectionId) -> int:
    """Drop all probes of a collection; returns how many."""
    return driver(connection).execute(statement("purge_probes"), {"collection_id": collection_id}).rowcount
