"""Candidates in SQL against the statement that a build runs: nearsim.candidates, the worked query and plain joins.

    python -m benchmarks.candidates --documents 100000
    python -m benchmarks.candidates --corpus stories.jsonl.gz --major 15

Indexes a corpus with the default recipe on a dedicated server, and runs all statements in turns. A build counts
shared bands from sketches afterwards, and its rows are buckets, each with its members; the other
statements count band rows, and their rows are candidates. Seconds are of the server's process
without parallel workers, or with --parallel on the wall clock with the server's default settings.
"""

import argparse
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from benchmarks.corpus import Corpus
from benchmarks.measure import describe_machine, machine, ratio, spread
from benchmarks.own_server import own_server
from benchmarks.truth import read_documents
from nearsim_db import Document, Index
from nearsim_db.store.driver.statements import Leaves, statement

_QUERY = (Path(__file__).parents[1] / "docs" / "queries" / "self_join.sql").read_text("utf-8")
_BUILD, _JOIN = "build", "join USING without a bucket limit"
_JOINED = """
SELECT own.doc_id AS left_id, other.doc_id AS right_id, count(*) AS shared_bands
FROM nearsim.band AS own JOIN nearsim.band AS other USING (generation_id, band_no, bucket_hash)
WHERE own.doc_id < other.doc_id AND generation_id = {generation}
GROUP BY own.doc_id, other.doc_id
"""

Session = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Run:
    """A statement with its parameters; none if it has no placeholders."""

    command: sql.Composable
    parameters: dict[str, int] | None = None

    def count(self, session: Session) -> int:
        """Run it and return the number of its rows."""
        counting = sql.SQL("SELECT count(*) FROM ({}) AS found").format(self.command)
        row = session.execute(counting, self.parameters).fetchone()
        return int(str(row[0])) if row else 0


def runs(leaves: Leaves) -> dict[str, Run]:
    """Return the statements by name: a build's, which does not depend on the bucket limit, and those of analysts."""
    return {
        _BUILD: Run(statement("collect_buckets", leaves), {"low": -(2**63), "high": 2**63 - 1}),
        "nearsim.candidates": Run(sql.SQL("SELECT * FROM nearsim.candidates('demo', 'default')")),
        "self_join.sql": Run(sql.SQL(_QUERY.rstrip().rstrip(";"))),
        _JOIN: Run(sql.SQL(_JOINED).format(generation=sql.Literal(leaves.generation_id))),
    }


def used_seconds(process: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(session: Session, chosen: dict[str, Run], rounds: int, *, parallel: bool) -> str:
    """Run all in turns and format the figures as Markdown, a line per statement."""
    if not parallel:
        session.execute("SET max_parallel_workers_per_gather = 0")
    process = session.info.backend_pid
    seconds: dict[str, list[float]] = {name: [] for name in chosen}
    rows = {}
    for _ in range(rounds):
        for name, run in chosen.items():
            began = time.perf_counter() if parallel else used_seconds(process)
            rows[name] = run.count(session)
            ended = time.perf_counter() if parallel else used_seconds(process)
            seconds[name].append(ended - began)
    lines = ["| statement | rows | seconds | times the build's |", "|---|---|---|---|"]
    for name in chosen:
        times = ratio(seconds[name], seconds[_BUILD])
        lines.append(f"| {name} | {rows[name]:,} | {spread(seconds[name])} | {times} |")
    return "\n".join(lines)


def load(url: str, documents: Iterable[Document]) -> Leaves:
    """Index documents under the names of the worked query; return the tables."""
    with Index.connect(url, collection="demo") as index:
        index.add(documents)
        return index.serving().context.leaves


def main() -> None:
    """Parse the command line, measure, print."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument(
        "--documents", type=int, default=100_000, help="generated ones (default: %(default)s)"
    )
    parser.add_argument("--corpus", type=Path, metavar="FILE.jsonl.gz", help="documents to index instead")
    parser.add_argument("--major", type=int, default=18, help="of PostgreSQL (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--parallel", action="store_true", help="wall clock, with parallel workers")
    options = parser.parse_args()
    if options.corpus is None:
        generated = Corpus(options.documents, seed=1).documents()
        documents: Iterable[Document] = (Document(one.external_id, one.title, one.text) for one in generated)
    else:
        documents = read_documents(options.corpus)
    with own_server(options.major) as server:
        leaves = load(server.dsn(), documents)
        with psycopg.connect(server.dsn(), autocommit=True) as session:
            print(measure(session, runs(leaves), options.rounds, parallel=options.parallel))
    print(describe_machine(machine()))


if __name__ == "__main__":
    main()
