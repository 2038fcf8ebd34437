"""The build of an index by several processes.

    python -m benchmarks.jobs [--documents 100000] [--jobs 1 2] [--rounds 3] [--corpus F.jsonl.gz]

Ingests a corpus with `nearsim ingest --jobs N`, the numbers of processes in turns, on a server of its own. Prints
Markdown: seconds on the clock and processor seconds of client and server, each also as a ratio to the first number of
processes in the same round, the seconds of each stage of the build, and the memory of the client's processes together.
The indexes must be equal: their pairs, with all figures, and their clusters.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psycopg

from benchmarks.corpus import Corpus, write_corpus
from benchmarks.measure import describe_machine, machine, ratio, spread
from benchmarks.own_server import own_server
from benchmarks.processes import Cost, run_measured
from nearsim_db.indexing.collections import delete_collection
from nearsim_db.store.database import Database
from nearsim_db.store.embedded.cluster import Cluster

RECIPE = Path(__file__).parent / "recipes" / "w3.toml"
STAGES = ("sign", "bands", "pairs", "clusters")
_SECONDS = "SELECT figures -> 'seconds' FROM nearsim.generation ORDER BY generation_id DESC LIMIT 1"
_DIGEST = """
WITH position AS (
    SELECT doc_id, row_number() OVER (ORDER BY doc_id) AS place FROM nearsim.signature
)
SELECT
    (SELECT md5(string_agg(concat_ws(',', l.place, r.place, similarity, estimate, shared_bands), ';'
        ORDER BY l.place, r.place))
    FROM nearsim.similar_pair JOIN position AS l ON l.doc_id = left_id JOIN position AS r ON r.doc_id = right_id)
    || (SELECT md5(string_agg(concat_ws(',', p.place, c.place, is_survivor), ';' ORDER BY p.place))
    FROM nearsim.cluster_member AS member JOIN position AS p USING (doc_id) JOIN position AS c ON c.doc_id = cluster_id)
"""


def ingest(cluster: Cluster, file: Path, collection: str, jobs: int) -> tuple[Cost, dict[str, float], str]:
    """Ingest a file; return the cost, the seconds by stage, and a digest of the pairs and clusters."""
    postmaster = cluster.status()
    assert postmaster is not None
    environment = {"NEARSIM_DATABASE_URL": cluster.dsn()}
    command = [sys.executable, "-m", "nearsim_db"]
    named = ["--collection", collection, "--quiet"]
    run_measured([*command, "profile", "create", "default", "--recipe", str(RECIPE), *named], environment)
    cost, _ = run_measured(
        [*command, "ingest", str(file), "--jobs", str(jobs), *named], environment, postmaster.process
    )
    with psycopg.connect(cluster.dsn()) as connection:
        seconds = connection.execute(_SECONDS).fetchone()
    assert seconds is not None
    return cost, dict(seconds[0]), read_digest(cluster.dsn())


def read_digest(url: str) -> str:
    """Return a digest of the pairs, clusters and survivors of a database with one generation."""
    with psycopg.connect(url) as connection:
        digest = connection.execute(_DIGEST).fetchone()
    assert digest is not None
    return str(digest[0])


def measure(major: int, file: Path, jobs: Sequence[int], rounds: int) -> str:
    """Ingest a corpus in turns by each number of processes, and return the table. Raises ValueError if they differ."""
    costs: dict[int, list[Cost]] = {number: [] for number in jobs}
    stages: dict[int, list[dict[str, float]]] = {number: [] for number in jobs}
    digests = set()
    with own_server(major) as cluster, Database.connect(cluster.dsn()) as database:
        for at in range(rounds):
            for number in jobs:
                name = f"jobs-{number}-{at}"
                cost, seconds, digest = ingest(cluster, file, name, number)
                delete_collection(database, name)
                costs[number].append(cost)
                stages[number].append(seconds)
                digests.add(digest)
                print(f"{number} processes: {cost.wall:.1f} s", file=sys.stderr)
    if len(digests) > 1:
        raise ValueError("the indexes differ")
    return table(costs, stages)


def table(costs: dict[int, list[Cost]], stages: dict[int, list[dict[str, float]]]) -> str:
    """Return the measurements, a line for each number of processes."""
    lines = [
        f"| processes | seconds | times | processor seconds | times | {' | '.join(STAGES)} | MB |",
        "|---" * (6 + len(STAGES)) + "|",
    ]
    base = next(iter(costs.values()))
    for number, found in costs.items():
        walls, used = [one.wall for one in found], [one.client + one.server for one in found]
        times = ratio(walls, [one.wall for one in base])
        more = ratio(used, [one.client + one.server for one in base])
        by_stage = " | ".join(str(spread([one[stage] for one in stages[number]])) for stage in STAGES)
        memory = max(one.megabytes for one in found)
        lines.append(
            f"| {number} | {spread(walls)} | {times} | {spread(used)} | {more} | {by_stage} | {memory:.0f} |"
        )
    return "\n".join(lines)


def read_options() -> argparse.Namespace:
    """Parse the command line."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.jobs", description=__doc__, formatter_class=layout
    )
    parser.add_argument("--documents", type=int, default=100_000, help="default: %(default)s")
    parser.add_argument("--jobs", type=int, nargs="+", default=(1, 2), help="default: 1 2")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--corpus", type=Path, help="instead of a synthetic one")
    parser.add_argument("--major", type=int, default=18, help="of PostgreSQL (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Measure in a temporary folder and print Markdown."""
    options = read_options()
    with tempfile.TemporaryDirectory() as name:
        file = options.corpus
        if file is None:
            file = Path(name) / "corpus.jsonl.gz"
            write_corpus(Corpus(options.documents, seed=1).documents(), file, None)
        print(measure(options.major, file, options.jobs, options.rounds))
    print(f"\n{describe_machine(machine())}; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
