"""Indexes on one server and on Citus clusters, which must be equal, and how the work divides among the servers.

    NEARSIM_CITUS_PG=BIN python -m benchmarks.scale_out --corpus F.jsonl.gz ... [--nodes 0 2 4] [--limits 8 64 0]
    NEARSIM_CITUS_PG=BIN python -m benchmarks.scale_out --documents 10000 100000 --nodes 2 --limits 64 [--block 10000]

Ingests corpora with `nearsim ingest` for each bucket limit (0: none) on each number of nodes (0: one server without
Citus), on servers of its own from the programs in the folder NEARSIM_CITUS_PG. Prints whether all pairs with their
figures, clusters and survivors are those of the first number of nodes; and for each server: processor seconds and
write-ahead log of the ingest, band rows with their bytes, messages and bytes that reached the coordinator, and
processor seconds of the statement that finds all links, alone. Full-page images and flushing are off. Messages are
counted with --traffic by relays, which are not in the figures, but delay the servers, which then wait more often.
With --block, generated corpora repeat the documents of a corpus of that size in other letters: a document then has as
many pairs at any size.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import psycopg

from benchmarks.corpus import Corpus, write_corpus
from benchmarks.jobs import read_digest
from benchmarks.measure import describe_machine, machine
from benchmarks.processes import processor_seconds, run_measured
from benchmarks.relay import Traffic, relay
from benchmarks.repeated import repeated
from nearsim_db.index import Index
from nearsim_db.store import bands
from nearsim_db.store.citus import placement
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.embedded.cluster import Cluster
from tests.servers.citus import CitusServer
from tests.servers.homes import server_home

RECIPE = Path(__file__).parent / "recipes" / "w3.toml"
_EVERY_BUCKET = (-(2**63), 2**63 - 1)
_WAL = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"


@dataclass(frozen=True, slots=True)
class Work:
    """What servers did, the coordinator first: processor seconds and bytes of WAL; messages and bytes sent by nodes."""

    processor: Sequence[float]
    wal: Sequence[int]
    sent: Sequence[tuple[int, int]]

    def since(self, before: "Work") -> "Work":
        """Return the work done since an earlier reading."""
        return Work(
            [new - old for new, old in zip(self.processor, before.processor, strict=True)],
            [new - old for new, old in zip(self.wal, before.wal, strict=True)],
            [(new[0] - old[0], new[1] - old[1]) for new, old in zip(self.sent, before.sent, strict=True)],
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """An index: a digest of its answers, its figures, and the work of the client and the servers.

    `links` is the work of the statement that finds all links; `stored` are band rows and their bytes by node.
    """

    digest: str
    figures: Mapping[str, int]
    client: float
    ingest: Work
    links: Work
    stored: Sequence[tuple[int, int]]


class Bench:
    """A coordinator and nodes, which are behind relays if their traffic is counted."""

    def __init__(self, folder: Path, nodes: int, stack: ExitStack, *, counts_traffic: bool) -> None:
        self._servers = CitusServer(folder, nodes)
        self._hosts = [folder / f"relay{number}" for number in range(nodes)] if counts_traffic else []
        self._traffic = [Traffic()] * nodes
        if counts_traffic:
            self._traffic = [
                stack.enter_context(relay(node.socket_directory, host))
                for node, host in zip(self._servers.nodes, self._hosts, strict=True)
            ]
        # Roles are created on the nodes too if the first database with the schema is distributed.
        with self.database(nodes):
            pass

    def database(self, nodes: int) -> AbstractContextManager[str]:
        """The URL of a database on so many nodes; 0: without Citus."""
        if not nodes:
            return self._servers.plain_database()
        return self._servers.database(nodes=nodes, hosts=self._hosts)

    def work(self, nodes: int) -> Work:
        """Return what the servers have done so far."""
        used = [self._servers.coordinator, *self._servers.nodes[:nodes]]
        return Work(
            [_processor_seconds(one) for one in used],
            [_written(one) for one in used],
            [(one.messages, one.bytes) for one in self._traffic[:nodes]],
        )


def _processor_seconds(cluster: Cluster) -> float:
    postmaster = cluster.status()
    assert postmaster is not None
    return processor_seconds(postmaster.process)


def _written(cluster: Cluster) -> int:
    with psycopg.connect(cluster.dsn("postgres")) as connection:
        found = connection.execute(_WAL).fetchone()
    assert found is not None
    return int(found[0])


def measure(bench: Bench, nodes: int, file: Path, recipe: Path, bucket_limit: int) -> Outcome:
    """Ingest a corpus into a database of its own."""
    with bench.database(nodes) as url:
        command, named = [sys.executable, "-m", "nearsim_db"], ["--collection", "measured", "--quiet"]
        settings = ["--recipe", str(recipe), "--set", f"match.bucket_limit={bucket_limit}"]
        environment = {"NEARSIM_DATABASE_URL": url}
        run_measured([*command, "profile", "create", "default", *settings, *named], environment)
        before = bench.work(nodes)
        cost, _ = run_measured([*command, "ingest", str(file), *named], environment)
        built = bench.work(nodes)
        with Index.connect(url, collection="measured") as index:
            leaves, figures = index.serving().context.leaves, index.stats(recount=True)
            with index.database.engine.connect() as connection:
                stored = placement.measure_nodes(connection) if nodes else []
                began = bench.work(nodes)
                found = count_links(connection, leaves, bucket_limit)
                linked = bench.work(nodes)
        return Outcome(
            read_digest(url),
            {name: int(figures[name]) for name in ("documents", "pairs", "clusters")} | {"links": found},
            cost.client,
            built.since(before),
            linked.since(began),
            [(one.rows, one.bytes) for one in stored],
        )


def count_links(connection: Connection, leaves: Leaves, bucket_limit: int) -> int:
    """Find the links of all buckets as a build does, and return their number."""
    with closing(bands.stream_links(connection, leaves, bucket_limit, _EVERY_BUCKET)) as links:
        return sum(len(batch.left) for batch in links)


def describe(name: str, bucket_limit: int, nodes: int, outcome: Outcome, base: Outcome) -> str:
    """Return the figures of an index in a line, and whether its answers are those of the first number of nodes."""
    figures = ", ".join(f"{amount:,} {key}" for key, amount in outcome.figures.items())
    same = "equal" if outcome.digest == base.digest else "DIFFERENT"
    return f"{name}, bucket_limit {bucket_limit or 'none'}, {nodes} nodes: {figures}: {same}"


def table(nodes: int, outcome: Outcome) -> str:
    """Return the work of each server, a line each; for nodes also what they store and sent to the coordinator."""
    lines = [
        "| | ingest, s | WAL, MB | band rows | MB | messages | MB | links, s | messages | MB |",
        "|---" * 10 + "|",
    ]
    for at in range(nodes + 1):
        cells = [f"node {at}" if at else "coordinator"]
        cells += [f"{outcome.ingest.processor[at]:.2f}", f"{outcome.ingest.wal[at] / 1e6:.1f}"]
        cells += _amounts(outcome.stored, at) + _amounts(outcome.ingest.sent, at)
        cells += [f"{outcome.links.processor[at]:.2f}", *_amounts(outcome.links.sent, at)]
        lines.append(f"| {' | '.join(cells)} |")
    milliseconds = outcome.ingest.processor[0] * 1e3 / outcome.figures["documents"]
    return "\n".join(
        [*lines, f"client: {outcome.client:.2f} s; coordinator: {milliseconds:.4f} ms a document"]
    )


def _amounts(found: Sequence[tuple[int, int]], at: int) -> list[str]:
    return [f"{found[at - 1][0]:,}", f"{found[at - 1][1] / 1e6:.2f}"] if at else ["", ""]


def read_options() -> argparse.Namespace:
    """Parse the command line."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale_out", description=__doc__, formatter_class=layout
    )
    parser.add_argument("--corpus", type=Path, nargs="+", default=[], metavar="FILE", help="corpora to take")
    parser.add_argument("--documents", type=int, nargs="+", default=[], help="sizes of generated corpora")
    parser.add_argument(
        "--block", type=int, metavar="N", help="repeat so many documents in generated corpora"
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[0, 2, 4], help="default: 0 2 4")
    parser.add_argument("--limits", type=int, nargs="+", default=[8, 64, 0], help="default: 8 64 0")
    parser.add_argument("--traffic", action="store_true", help="count messages of the nodes")
    parser.add_argument("--recipe", type=Path, default=RECIPE, metavar="R.toml")
    return parser.parse_args()


def corpora(options: argparse.Namespace, folder: Path) -> Iterator[Path]:
    """Yield the files of the corpora."""
    yield from options.corpus
    for size in options.documents:
        file = folder / f"generated-{size}.jsonl.gz"
        block = Corpus(options.block or size, seed=1).documents()
        write_corpus(repeated(list(block), size) if options.block else block, file, None)
        yield file


def main() -> None:
    """Measure in a temporary folder and print Markdown."""
    options = read_options()
    with server_home() as folder, ExitStack() as stack:
        bench = Bench(folder, max(options.nodes), stack, counts_traffic=options.traffic)
        for file, bucket_limit in product(corpora(options, folder), options.limits):
            base = None
            for nodes in options.nodes:
                outcome = measure(bench, nodes, file, options.recipe, bucket_limit)
                base = base or outcome
                print(describe(file.name, bucket_limit, nodes, outcome, base))
                print(f"\n{table(nodes, outcome)}\n", flush=True)
    print(f"{describe_machine(machine())}; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
