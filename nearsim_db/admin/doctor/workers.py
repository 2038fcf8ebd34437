"""Checks of the workers: whether any runs, sends heartbeats, and keeps up with what is written."""

from collections.abc import Iterator, Sequence

from nearsim_db.admin.doctor.findings import Finding
from nearsim_db.errors import count_of
from nearsim_db.indexing import profiles
from nearsim_db.store import collection_rows, generation_rows, query_rows
from nearsim_db.store.driver import Connection
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.work import backlog, leases
from nearsim_db.store.work.backlog import Backlog

_LONG_SECONDS = 60.0


def check(connection: Connection) -> Iterator[Finding]:
    """Report the workers: those without a heartbeat, and whether the responsive ones keep up."""
    existing = generation_rows.list_generations(connection)
    refused = [one.generation_id for one in existing if profiles.is_refused(one)]
    queued = backlog.read_backlog(connection, None, refused)
    waiting = _describe(queued)
    holders = leases.list_workers(connection)
    responsive = [one.worker for one in holders if one.is_responsive]
    for one in holders:
        if not one.is_responsive:
            finding = f"{one.worker} has sent no heartbeat for {one.silent_seconds:.0f} s"
            shown = f"{finding}; {waiting}" if waiting else finding
            yield Finding("workers", "warning", shown, _silence_advice())
    if responsive:
        yield _check_pace(responsive, queued, waiting)
    elif not holders:
        yield _check_absence(waiting, is_fresh=_is_fresh(connection, existing))


def _describe(queued: Backlog) -> str:
    """Return what waits, such as "3 changes waiting, the oldest for 67 s"; an empty string if nothing does."""
    counts = {"change": queued.changes, "document": sum(queued.by_stage.values())}
    shown = " and ".join(count_of(number, noun) for noun, number in counts.items() if number)
    age = f", the oldest for {queued.oldest_seconds:.0f} s" if queued.oldest_seconds >= _LONG_SECONDS else ""
    return f"{shown} waiting{age}" if shown else ""


def _silence_advice() -> str:
    return (
        "it is stopped or in a long batch: see its log, or end it; other workers take its work after "
        f"{leases.SILENCE_SECONDS:.0f} s without a heartbeat"
    )


def _check_pace(responsive: Sequence[str], queued: Backlog, waiting: str) -> Finding:
    running = f"{len(responsive)} running: {', '.join(responsive)}"
    if not waiting or queued.oldest_seconds < _LONG_SECONDS:
        return Finding("workers", "ok", running)
    advice = (
        "see its log and: nearsim work list; start more workers, also for other collections than it serves"
    )
    return Finding("workers", "warning", f"{running}; {waiting}", advice)


def _check_absence(waiting: str, *, is_fresh: bool) -> Finding:
    if not waiting or is_fresh:
        return Finding("workers", "ok", "none running")
    return Finding(
        "workers", "warning", f"{waiting}, but no worker is running", "nearsim worker, or nearsim build"
    )


def _is_fresh(connection: Connection, existing: Sequence[Generation]) -> bool:
    """Whether there were no documents yet: a new schema captures a change of everything."""
    return all(one.is_first_build for one in existing) and not any(
        query_rows.has_documents(connection, one.collection_id)
        for one in collection_rows.list_collections(connection)
    )
