"""The cost of change-capture triggers for other applications, and of consuming the changes.

    python benchmarks/capture.py [--majors 18 15] [--rows 100000] [--single 10000] [--rounds 5] [--json]

Each major has a server of its own, with the shipped durability settings. Each round writes the same rows with
and without the triggers, into an empty table, after a checkpoint: a COPY of all rows as psql would send it;
single-row INSERTs and UPDATEs in one transaction, and in one transaction each. Then changes are consumed as by
a worker, from a long queue.

"Without" means dropped, including the trigger that maintains `revision`. For a trigger that is only disabled
PostgreSQL still keeps the rows of its transition table, in a temporary file beyond work_mem: "disabled" shows
that part of the cost.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import psutil
import psycopg
from psycopg import sql

from benchmarks.corpus import generator
from benchmarks.lexicon import invent_words
from benchmarks.measure import describe_machine, machine, ratio, spread
from benchmarks.own_server import binaries_by_major, own_server
from nearsim_db.store.driver.statements import statement

Connection = psycopg.Connection[tuple[object, ...]]

ENABLED, DISABLED, DROPPED = "triggers", "disabled", "none"
_BLOCK_BYTES = 65_536
_WORDS = 20_000
_DISPATCH_BATCH = 10_000


def make_bodies(rows: int, length: int, seed: int = 1) -> list[str]:
    """Return texts of random words, each of exactly `length` ASCII characters."""
    rng = generator(np.random.SeedSequence(seed))
    words = invent_words(rng, _WORDS)
    bodies = []
    for _ in range(rows):
        text = ""
        while len(text) < length:
            text = " ".join((text, *(words[one] for one in rng.integers(0, _WORDS, length // 5))))
        bodies.append(text[1 : length + 1].ljust(length, "x"))
    return bodies


def copy_stream(collection_id: int, bodies: Sequence[str]) -> bytes:
    """Return the bodies as rows of COPY's text format."""
    return "".join(f"{collection_id}\tdoc-{row}\t{body}\n" for row, body in enumerate(bodies)).encode()


@dataclass(frozen=True, slots=True)
class Bench:
    """An autocommit connection, the collection and rows to write, and the triggers' definitions."""

    connection: Connection
    collection_id: int
    bodies: Sequence[str]
    single: int
    triggers: Mapping[str, str]

    def prepare(self, triggers: str, filled: int) -> None:
        """Empty documents and changes, insert `filled` documents, set the triggers, checkpoint."""
        self._set_triggers(DROPPED)
        self.connection.execute("TRUNCATE nearsim.document, nearsim.change")
        if filled:
            self.copy(copy_stream(self.collection_id, self.bodies[:filled]))
        self.connection.execute("VACUUM (ANALYZE) nearsim.document, nearsim.change")
        self._set_triggers(triggers)
        self.connection.execute("CHECKPOINT")

    def copy(self, stream: bytes) -> None:
        """COPY as psql does, in one transaction."""
        command = "COPY nearsim.document (collection_id, external_id, body) FROM STDIN"
        with self.connection.cursor() as cursor, cursor.copy(command) as sink:
            for start in range(0, len(stream), _BLOCK_BYTES):
                sink.write(stream[start : start + _BLOCK_BYTES])

    def insert(self) -> None:
        """Run one INSERT per document."""
        command = "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (%s, %s, %s)"
        for row, body in enumerate(self.bodies[: self.single]):
            self.connection.execute(command, (self.collection_id, f"doc-{row}", body))

    def update(self) -> None:
        """Run one UPDATE per document, each changing the text."""
        command = "UPDATE nearsim.document SET body = %s WHERE collection_id = %s AND external_id = %s"
        for row, body in enumerate(reversed(self.bodies[: self.single])):
            self.connection.execute(command, (body, self.collection_id, f"doc-{row}"))

    def in_one_transaction(self, write: Callable[[], None]) -> None:
        """Run all writes in one transaction."""
        with self.connection.transaction():
            write()

    def ways(self) -> dict[str, tuple[int, Callable[[], None]]]:
        """The ways of writing: how many documents must be there before, and the writing."""
        single, stream = self.single, copy_stream(self.collection_id, self.bodies)
        return {
            f"COPY of {len(self.bodies)}": (0, partial(self.copy, stream)),
            f"{single} INSERTs in a transaction": (0, partial(self.in_one_transaction, self.insert)),
            f"{single} INSERTs in a transaction each": (0, self.insert),
            f"{single} UPDATEs in a transaction": (single, partial(self.in_one_transaction, self.update)),
            f"{single} UPDATEs in a transaction each": (single, self.update),
        }

    def _set_triggers(self, triggers: str) -> None:
        for name in self.triggers:
            drop = sql.SQL("DROP TRIGGER IF EXISTS {} ON nearsim.document").format(sql.Identifier(name))
            self.connection.execute(drop)
        if triggers == DROPPED:
            return
        for definition in self.triggers.values():
            self.connection.execute(definition.encode())
        if triggers == DISABLED:
            self.connection.execute("ALTER TABLE nearsim.document DISABLE TRIGGER USER")


def measure_way(bench: Bench, filled: int, write: Callable[[], None], rounds: int) -> dict[str, object]:
    """Measure wall and server CPU seconds and WAL bytes, taking turns; ratios are relative to no triggers."""
    names = (ENABLED, DISABLED, DROPPED)
    results = {figure: {name: list[float]() for name in names} for figure in ("seconds", "processor", "WAL")}
    server = psutil.Process(bench.connection.info.backend_pid)
    for number in range(rounds + 1):
        for name in names:
            bench.prepare(name, filled)
            before = _usage(bench.connection, server)
            write()
            after = _usage(bench.connection, server)
            if number:  # the first round warms up
                for figure, value in after.items():
                    results[figure][name].append(value - before[figure])
    return {figure: compare(values) for figure, values in results.items()}


def compare(values: Mapping[str, Sequence[float]]) -> dict[str, object]:
    """Return the spread of each kind's values, the ratio of its median to that without triggers, and ratios by
    round.
    """
    base = spread(values[DROPPED]).median
    return {
        **{name: str(spread(one)) for name, one in values.items()},
        "ratio of medians": {
            name: round(spread(one).median / base, 3) for name, one in values.items() if name != DROPPED
        },
        "ratio by round": {
            name: str(ratio(one, values[DROPPED])) for name, one in values.items() if name != DROPPED
        },
    }


def measure_dispatch(bench: Bench, waiting: int, taken: int) -> dict[str, object]:
    """Consume `taken` of `waiting` changes in batches, into the work of one generation."""
    bench.prepare(DROPPED, 0)
    connection = bench.connection
    connection.execute("TRUNCATE nearsim.work")
    connection.execute(
        "INSERT INTO nearsim.change (collection_id, doc_id) SELECT %s, id FROM generate_series(1, %s) AS id",
        (bench.collection_id, waiting),
    )
    command, seconds = statement("dispatch_changes", skipping_locked=sql.SQL("")), []
    for _ in range(taken // _DISPATCH_BATCH):
        started = time.perf_counter()
        connection.execute(command, {"batch": _DISPATCH_BATCH, "lease_id": None, "generation_ids": []})
        seconds.append(time.perf_counter() - started)
    return {
        "changes/s": round(taken / sum(seconds)),
        f"seconds a batch of {_DISPATCH_BATCH}": str(spread(seconds)),
    }


def _usage(connection: Connection, server: psutil.Process) -> dict[str, float]:
    """Return the wall clock, the CPU time of the connection's server process in seconds, and the WAL's length in
    bytes.
    """
    row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
    assert row is not None
    times = server.cpu_times()
    return {"seconds": time.perf_counter(), "processor": times.user + times.system, "WAL": float(str(row[0]))}


def read_triggers(connection: Connection) -> dict[str, str]:
    """Return the definitions of the document table's triggers by name, without those of its constraints."""
    rows = connection.execute(
        "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger "
        "WHERE tgrelid = CAST('nearsim.document' AS regclass) AND NOT tgisinternal"
    )
    return {str(name): str(definition) for name, definition in rows}


def make_collection(connection: Connection) -> int:
    """Create a collection with one live generation, whose tables are not used here."""
    row = connection.execute(
        "WITH own AS (INSERT INTO nearsim.collection (name) VALUES ('capture') RETURNING collection_id), "
        "profile AS (INSERT INTO nearsim.profile (collection_id, name) SELECT collection_id, 'capture' FROM own "
        "RETURNING profile_id, collection_id), "
        "generation AS (INSERT INTO nearsim.generation (profile_id, state, recipe, fingerprint) "
        "SELECT profile_id, 'live', '{}', '' FROM profile) "
        "SELECT collection_id FROM profile"
    ).fetchone()
    assert row is not None
    return int(str(row[0]))


def run_major(major: int, bodies: Sequence[str], options: argparse.Namespace) -> dict[str, object]:
    """Run all measurements on one major."""
    with own_server(major) as cluster, psycopg.connect(cluster.dsn(), autocommit=True) as connection:
        triggers = read_triggers(connection)
        bench = Bench(connection, make_collection(connection), bodies, options.single, triggers)
        results: dict[str, object] = {
            name: measure_way(bench, filled, write, options.rounds)
            for name, (filled, write) in bench.ways().items()
            if options.only is None or options.only in name
        }
        for waiting in options.waiting:
            name = f"dispatch of {options.rows} of {waiting}"
            results[name] = measure_dispatch(bench, waiting, options.rows)
    return results


def main() -> None:
    """Measure each major and print."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    majors = sorted(binaries_by_major(), reverse=True)
    parser.add_argument("--majors", type=int, nargs="+", choices=majors, default=majors)
    parser.add_argument("--rows", type=int, default=100_000, help="of the COPY (default: %(default)s)")
    parser.add_argument("--single", type=int, default=10_000, help="single writes (default: %(default)s)")
    parser.add_argument("--length", type=int, default=1_400, help="bytes of a body (default: %(default)s)")
    parser.add_argument(
        "--waiting", type=int, nargs="*", default=[100_000, 1_000_000], help="changes waiting"
    )
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--only", metavar="WORD", help="only the ways of writing with this in their name")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    bodies = make_bodies(options.rows, options.length)
    results = {f"PostgreSQL {major}": run_major(major, bodies, options) for major in options.majors}
    facts = machine()
    if options.json:
        print(json.dumps({**results, "machine": facts}, indent=2))
        return
    print(json.dumps(results, indent=2))
    print(describe_machine(facts))


if __name__ == "__main__":
    main()
