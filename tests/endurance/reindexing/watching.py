"""A sampler of the server's strong locks on tables."""

import time
from multiprocessing.connection import Connection as Pipe
from multiprocessing.synchronize import Event
from typing import NamedTuple

import psycopg

_PAUSE_SECONDS = 0.001
_LOCKS = """
SELECT pg_class.relname, lock.mode, lock.pid FROM pg_catalog.pg_locks AS lock
JOIN pg_catalog.pg_class ON pg_class.oid = lock.relation AND pg_class.relnamespace = ANY (%(schemas)s)
WHERE lock.granted AND lock.locktype = 'relation'
    AND lock.mode <> ALL (ARRAY['AccessShareLock', 'RowShareLock', 'RowExclusiveLock'])
"""


class Held(NamedTuple):
    """A strong lock on a table of the schema, observed from `first` to `last` by this machine's clock."""

    table: str
    mode: str
    first: float
    last: float


class Watched(NamedTuple):
    """All observations; consecutive samples are at most `gap_seconds` apart."""

    held: list[Held]
    looks: int
    gap_seconds: float


def watch(url: str, stopping: Event, report: "Pipe[Watched, None]") -> None:
    """Sample the locks as often as possible until stopped; then report."""
    held: list[Held] = []
    seen: dict[tuple[object, ...], Held] = {}
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
            for key in rows:
                first = seen[key].first if key in seen else now
                there[key] = Held(str(key[0]), str(key[1]), first, now)
            held += [one for key, one in seen.items() if key not in there]
            seen = there
    report.send(Watched(held + list(seen.values()), looks, gap))
