"""The SQL interface at scale: every worked query of docs/sql.md, counts of the views, and functions on few
documents.

    python -m benchmarks.sql_surface --documents 200000 --major 18

Indexes the synthetic corpus on a dedicated server and queries it like an analyst's session, with the server's
default settings. Queries are timed to their last row, the best and the worst of three; functions by
percentiles.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
from psycopg import sql

from benchmarks.corpus import Corpus
from benchmarks.living.speed import percentiles
from benchmarks.measure import describe_machine, machine
from benchmarks.own_server import own_server
from benchmarks.result_sets import make_sets, read_rows
from nearsim_db import Document, Index

_QUERIES = Path(__file__).parents[1] / "docs" / "queries"
_VIEWS = ("documents", "clusters", "duplicates", "buckets", "pairs")
_CALLS = 500
_BEGUN = datetime(2026, 1, 1, tzinfo=UTC)

Session = psycopg.Connection[tuple[object, ...]]


def time_query(session: Session, query: sql.SQL | sql.Composed) -> list[float]:
    """Return the seconds of three runs, sorted."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        session.execute(query).fetchall()
        seconds.append(round(time.perf_counter() - started, 3))
    return sorted(seconds)


def time_calls(session: Session, call: sql.SQL, arguments: Iterable[object]) -> dict[str, float]:
    """Return percentiles of milliseconds of one call per argument, after an uncounted warm-up."""
    milliseconds = []
    for argument in arguments:
        started = time.perf_counter()
        session.execute(call, [argument]).fetchall()
        milliseconds.append(1_000 * (time.perf_counter() - started))
    return percentiles(milliseconds[20:])


def run(url: str, documents: int) -> dict[str, object]:
    """Index the corpus under the name that the worked queries use, and run everything."""
    with Index.connect(url, collection="demo") as index:
        index.add(
            Document(
                one.external_id,
                one.title,
                one.text,
                source=f"source {place % 50}",
                published_at=_BEGUN + timedelta(minutes=place),
            )
            for place, one in enumerate(Corpus(documents, seed=1).documents())
        )
        rows, clusters = read_rows(index)
        stats = index.stats()
    sets = make_sets(rows, clusters, _CALLS, seed=1)
    alone = [int(one[0, 0]) for one in sets]
    with psycopg.connect(url, autocommit=True) as session:
        return {
            "documents": stats["documents"],
            "pairs": stats["pairs"],
            "worked queries, seconds": {
                path.stem: time_query(session, sql.SQL(path.read_text("utf-8")))
                for path in sorted(_QUERIES.glob("*.sql"))
            },
            "count(*), seconds": {
                view: time_query(
                    session, sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier("nearsim", view))
                )
                for view in _VIEWS
            },
            "milliseconds": {
                "dedupe of 100": time_calls(
                    session, sql.SQL("SELECT * FROM nearsim.dedupe(%s)"), (one[:, 0].tolist() for one in sets)
                ),
                "similar_to": time_calls(
                    session, sql.SQL("SELECT * FROM nearsim.similar_to(%s::bigint)"), alone
                ),
                "pairs of one": time_calls(
                    session, sql.SQL("SELECT * FROM nearsim.pairs WHERE left_id = %s"), alone
                ),
            },
        }


def main() -> None:
    """Parse the command line, measure, print one JSON document."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--documents", type=int, default=200_000, help="default: %(default)s")
    parser.add_argument("--major", type=int, default=18, help="of PostgreSQL (default: %(default)s)")
    options = parser.parse_args()
    print(describe_machine(machine()), file=sys.stderr)
    with own_server(options.major) as server:
        print(json.dumps(run(server.dsn(), options.documents), indent=2))


if __name__ == "__main__":
    main()
