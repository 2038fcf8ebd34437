"""The latency of lookups, from Python and from SQL, after a restart and warm; and the cost of isolation.

    python -m benchmarks lookups [--documents 1000000] [--corpus F.jsonl.gz] [--calls 1000] [--limit 20]
    python -m benchmarks lookups --documents 1000000 --keep FOLDER

Indexes the synthetic corpus, or a file, on a dedicated server. With --keep the data remains in a folder, and a later
run uses the index in that folder again. Documents of the corpus are looked up in random order. "first touch" is
measured directly after a restart of the server, whose files are in the system's cache: each lookup reads pages that are
not in the server's memory, and the first lookups plan their statements. "warm" repeats the same lookups. Figures are
milliseconds on the clock, and of the processor time of client and server, which are valid on a busy machine too.
`isolation` compares the processor time of a tenant with that of a role that bypasses row-level security, in turns on
two connections. Its statements are not prepared, so that planning counts.
"""

import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, LiteralString

import psycopg
from typer import Option

from benchmarks.corpus import Corpus
from benchmarks.options import CorpusFile, Documents, Limit, Major
from benchmarks.own_server import own_server
from benchmarks.speed import percentiles
from nearsim_db import Document, Index
from nearsim_db.readers import Source
from nearsim_db.store.embedded.cluster import PostgresCluster

COLLECTION = "lookups"
CALLS: Mapping[str, LiteralString] = {
    "similar_to": "SELECT * FROM nearsim.similar_to_by_doc_id(CAST(%(doc_id)s AS bigint), max_matches => %(limit)s)",
    "why": "SELECT * FROM nearsim.why_by_doc_id(CAST(%(doc_id)s AS bigint), CAST(%(other_id)s AS bigint))",
    "view pairs": "SELECT * FROM nearsim.pairs WHERE left_id = %(doc_id)s",
    "view documents": "SELECT * FROM nearsim.documents WHERE doc_id = %(doc_id)s",
    "table document": "SELECT * FROM nearsim.document WHERE doc_id = %(doc_id)s",
}
_TURN = 20
_ROLES = ("lookups_tenant", "lookups_bypass")

Session = psycopg.Connection[tuple[object, ...]]
Arguments = Mapping[str, object]


def is_indexed(url: str) -> bool:
    """Whether the server already has an index of the documents."""
    with psycopg.connect(url) as session:
        row = session.execute(
            "SELECT EXISTS (SELECT FROM nearsim.generation JOIN nearsim.profile USING (profile_id) "
            "JOIN nearsim.collection USING (collection_id) "
            "WHERE collection.name = %s AND generation.state = 'live')",
            (COLLECTION,),
        ).fetchone()
    assert row is not None
    return bool(row[0])


def fill(url: str, documents: int, corpus: Path | None) -> None:
    """Index a file, or the synthetic corpus."""
    with Index.connect(url, collection=COLLECTION) as index:
        if corpus is not None:
            index.ingest(Source([corpus]))
            return
        index.add(
            Document(document.external_id, document.title, document.text)
            for document in Corpus(documents, seed=1).documents()
        )


def sample(url: str, calls: int) -> list[tuple[int, str | None, str | None]]:
    """Return doc_id, title and body of random documents."""
    with psycopg.connect(url) as session:
        ids = [int(str(row[0])) for row in session.execute("SELECT doc_id FROM nearsim.document ORDER BY 1")]
        chosen = random.Random(1).sample(ids, min(calls, len(ids)))
        rows = session.execute(
            "SELECT doc_id, title, body FROM nearsim.document WHERE doc_id = ANY(%s)", (chosen,)
        )
        texts = {int(str(doc_id)): (title, body) for doc_id, title, body in rows}
    return [(doc_id, *_strings(texts[doc_id])) for doc_id in chosen]


def _strings(text: tuple[object, ...]) -> tuple[str | None, str | None]:
    title, body = text
    return None if title is None else str(title), None if body is None else str(body)


def restart(server: PostgresCluster) -> None:
    """Restart the server, which empties its memory; its files stay in the cache of the system."""
    server.stop()
    server.start()


def time_each(url: str, call: Callable[[int], object], count: int) -> dict[str, dict[str, float]]:
    """Return percentiles of the milliseconds of `count` calls, on the clock and of the processors.

    The calls must use existing sessions, and nothing else may use the server.
    """
    with psycopg.connect(url) as session:
        servers = [
            int(str(row[0]))
            for row in session.execute(
                "SELECT pid FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
        ]

    clock, processor = [], []
    for at in range(count):
        used = time.process_time() + sum(map(processor_seconds, servers))
        started = time.perf_counter()
        call(at)
        clock.append(1_000 * (time.perf_counter() - started))
        processor.append(1_000 * (time.process_time() + sum(map(processor_seconds, servers)) - used))
    return {"clock": percentiles(clock), "processor": percentiles(processor)}


Figures = dict[str, dict[str, dict[str, float]]]


def measure_texts(
    server: PostgresCluster, texts: Sequence[tuple[int, str | None, str | None]], limit: int | None
) -> Figures:
    """Look up texts from Python after a restart, and again. Compiled code is loaded before the measurement."""
    with Index.connect(server.dsn(), collection=COLLECTION) as index:
        index.similar_to_text("a text that nothing is like", limit=limit)
    restart(server)

    with Index.connect(server.dsn(), collection=COLLECTION) as index:
        index.similar_to_text("a text that nothing is like", limit=limit)

        def look_up(at: int) -> object:
            _, title, body = texts[at]
            return index.similar_to_text(body or "", title, limit=limit)

        return {name: time_each(server.dsn(), look_up, len(texts)) for name in ("first touch", "warm")}


def measure_documents(server: PostgresCluster, doc_ids: Sequence[int], limit: int | None) -> Figures:
    """Look up stored documents from SQL after a restart, and again."""
    restart(server)
    with psycopg.connect(server.dsn(), autocommit=True) as session:

        def look_up(at: int) -> object:
            return session.execute(
                CALLS["similar_to"], {"doc_id": doc_ids[at], "limit": limit}, prepare=True
            ).fetchall()

        return {name: time_each(server.dsn(), look_up, len(doc_ids)) for name in ("first touch", "warm")}


@contextmanager
def isolated(url: str) -> Iterator[dict[str, Session]]:
    """Turn isolation on; yield the sessions of a tenant who may read the collection and of a role that bypasses it."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE ROLE lookups_tenant; CREATE ROLE lookups_bypass BYPASSRLS")
        admin.execute("GRANT nearsim_reader TO lookups_tenant, lookups_bypass")
        admin.execute(
            "INSERT INTO nearsim_index.collection_access (collection_id, role_name) "
            "SELECT collection_id, 'lookups_tenant' FROM nearsim.collection WHERE name = %s",
            (COLLECTION,),
        )
        admin.execute("SELECT nearsim.set_isolation(true)")

    sessions = {role: psycopg.connect(url, autocommit=True) for role in _ROLES}
    for role, session in sessions.items():
        # A role cannot be a parameter; bytes, unlike a string, satisfy the type of psycopg's `execute`.
        session.execute(f"SET SESSION AUTHORIZATION {role}".encode())
    try:
        yield sessions
    finally:
        for session in sessions.values():
            session.close()
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("SELECT nearsim.set_isolation(false)")
            admin.execute("DELETE FROM nearsim_index.collection_access WHERE role_name = 'lookups_tenant'")
            admin.execute("DROP ROLE lookups_tenant, lookups_bypass")


def processor_seconds(process: int) -> float:
    """Return the processor seconds that a server process has used."""
    # schedstat has nanoseconds, which are finer than the ticks of /proc/PID/stat.
    status = Path(f"/proc/{process}/schedstat").read_text(encoding="ascii")
    return int(status.split()[0]) / 1e9


def measure_isolation(url: str, pairs: Sequence[tuple[int, int]], limit: int) -> dict[str, dict[str, float]]:
    """Return the processor time of calls with and without isolation, in turns, and the ratio of the medians."""
    arguments = [{"doc_id": left_id, "other_id": right_id, "limit": limit} for left_id, right_id in pairs]
    results = {}
    with isolated(url) as sessions:
        for name, call in CALLS.items():
            used: dict[str, list[float]] = {role: [] for role in _ROLES}

            for begin in range(0, len(arguments), _TURN):
                for role, session in sessions.items():
                    used[role].append(_run(session, call, arguments[begin : begin + _TURN]))
            tenant, free = (statistics.median(used[role][1:]) for role in _ROLES)
            results[name] = {
                "microseconds": round(free),
                "with isolation": round(tenant),
                "ratio": round(tenant / free, 3),
            }
    return results


def _run(session: Session, call: LiteralString, arguments: Sequence[Arguments]) -> float:
    process = session.info.backend_pid
    before = processor_seconds(process)
    for values in arguments:
        session.execute(call, values, prepare=False).fetchall()
    return (processor_seconds(process) - before) * 1e6 / len(arguments)


def read_pairs(url: str, count: int) -> list[tuple[int, int]]:
    """Return the doc_ids of some pairs."""
    with psycopg.connect(url) as session:
        rows = session.execute(
            "SELECT left_id, right_id FROM nearsim.similar_pair ORDER BY hashint8(left_id), right_id LIMIT %s",
            (count,),
        )
        return [(int(str(left)), int(str(right))) for left, right in rows]


def main(
    documents: Documents = 100_000,
    corpus: CorpusFile = None,
    keep: Annotated[
        Path | None, Option(metavar="FOLDER", help="Folder that keeps the index for later runs.")
    ] = None,
    calls: Annotated[int, Option(help="Number of calls of each kind.")] = 1_000,
    limit: Limit = 20,
    major: Major = 18,
) -> dict[str, object]:
    """Build an index, and look up documents of it."""
    with own_server(major, kept=keep) as server:
        if not is_indexed(server.dsn()):
            fill(server.dsn(), documents, corpus)
        texts = sample(server.dsn(), calls)
        doc_ids = [doc_id for doc_id, _, _ in texts]
        results = {
            name: {
                "similar_to_text": measure_texts(server, texts, max_matches),
                "similar_to": measure_documents(server, doc_ids, max_matches),
            }
            for name, max_matches in (("all matches", None), (f"limit {limit}", limit))
        }
        isolation = measure_isolation(server.dsn(), read_pairs(server.dsn(), calls), limit)
    return {"milliseconds": results, "isolation": isolation}
