"""A sampler of the server's locks: strong ones on shared tables, and sessions that wait for one."""

import time
from multiprocessing.connection import Connection as Pipe
from multiprocessing.synchronize import Event
from typing import NamedTuple

import psycopg

_PAUSE_SECONDS = 0.001
_LOCKS = """
SELECT pg_class.relname, lock.mode, lock.pid, lock.granted, activity.application_name,
    extract(epoch FROM clock_timestamp() - lock.waitstart)
FROM pg_catalog.pg_locks AS lock
LEFT JOIN pg_catalog.pg_class ON pg_class.oid = lock.relation AND pg_class.relnamespace = ANY (%(schemas)s)
LEFT JOIN pg_catalog.pg_stat_activity AS activity ON activity.pid = lock.pid AND NOT lock.granted
WHERE NOT lock.granted
    OR lock.locktype = 'relation' AND pg_class.oid IS NOT NULL
        AND lock.mode <> ALL (ARRAY['AccessShareLock', 'RowShareLock', 'RowExclusiveLock'])
"""


class Held(NamedTuple):
    """A strong lock on a table of the schema, observed from `first` to `last` by this machine's clock."""

    table: str
    mode: str
    first: float
    last: float


class Wait(NamedTuple):
    """An application's session observed waiting for a lock, and for how long at most."""

    application: str
    table: str | None
    seen: float
    seconds: float


class Watched(NamedTuple):
    """All observations; consecutive samples are at most `gap_seconds` apart."""

    held: list[Held]
    waits: list[Wait]
    looks: int
    gap_seconds: float


def watch(url: str, stopping: Event, report: "Pipe[Watched, None]") -> None:
    """Sample the locks as often as possible until stopped; then report."""
    held: list[Held] = []
    seen: dict[tuple[object, ...], Held] = {}
    waits: list[Wait] = []
    looks, gap, before = 0, 0.0, time.monotonic()
    with psycopg.connect(url, autocommit=True, application_name="watcher") as connection:
        row = connection.execute(
            "SELECT array_agg(oid) FROM pg_namespace WHERE nspname IN ('nearsim', 'nearsim_index')"
        ).fetchone()
        assert row is not None
        while not stopping.wait(_PAUSE_SECONDS):
            rows = connection.execute(_LOCKS, {"schemas": row[0]}, prepare=True).fetchall()
            now = time.monotonic()
            looks, gap, before = looks + 1, max(gap, now - before), now
            there: dict[tuple[object, ...], Held] = {}
            for table, mode, pid, granted, application, waited in rows:
                if granted:
                    key = (table, mode, pid)
                    first = seen[key].first if key in seen else now
                    there[key] = Held(str(table), str(mode), first, now)
                elif application:
                    waits.append(Wait(str(application), table and str(table), now, float(waited or 0)))
            held += [one for key, one in seen.items() if key not in there]
            seen = there
    report.send(Watched(held + list(seen.values()), waits, looks, gap))
