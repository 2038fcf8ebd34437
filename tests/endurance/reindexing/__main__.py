"""Replace the index of a collection under load, and measure the effect on its users.

    python -m tests.endurance.reindexing [--documents 50000] [--corpus F.jsonl.gz] [--writes-per-second 200] [--json]

Runs on a dedicated server with the shipped durability settings. Writers insert, edit and delete in plain SQL,
searchers continuously query families for which each recipe finds a different half, workers process changes;
meanwhile `nearsim reindex` builds a generation with another recipe, promotes it, rolls back, promotes it again
and drops the old one. Then the queue is drained and the same index is built again without load. The exit code
is 1 if an answer mixed generations, a search failed, or the final generation differs from the new build.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import describe_machine, machine
from benchmarks.own_server import binaries_by_major, own_server
from benchmarks.truth import read_documents
from tests.endurance.reindexing import evaluation, fresh, scenario
from tests.endurance.reindexing.scenario import Load
from tests.endurance.reindexing.texts import make_crowd, repeat_corpus


def measure(url: str, documents: int, corpus: Path | None, load: Load) -> dict[str, Any]:
    """Run once in an empty database, with `documents` documents in the collection."""
    count = documents - 3 * load.families
    crowd = (
        repeat_corpus(read_documents(corpus), count, load.seed) if corpus else make_crowd(count, load.seed)
    )
    world = scenario.make_world(url, crowd, load)
    seen = scenario.run(world, load)
    counted, found = fresh.check(world, seen.generation_after, seen.left)
    return {**evaluation.figures(seen, load), **counted, "violations": evaluation.violations(seen) | found}


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    majors = sorted(binaries_by_major(), reverse=True)
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m tests.endurance.reindexing", description=__doc__, formatter_class=layout
    )
    usual = Load()
    parser.add_argument("--major", type=int, choices=majors, default=majors[0], help="default: %(default)s")
    parser.add_argument("--documents", type=int, default=50_000, help="default: %(default)s")
    parser.add_argument("--corpus", type=Path, metavar="F.jsonl.gz", help="repeated as often as needed")
    parser.add_argument("--workers", type=int, default=usual.workers, help="default: %(default)s")
    parser.add_argument("--writers", type=int, default=usual.writers, help="default: %(default)s")
    parser.add_argument("--writes-per-second", type=float, default=usual.writes_per_second)
    parser.add_argument("--searchers", type=int, default=usual.searchers, help="default: %(default)s")
    parser.add_argument("--searches-per-second", type=float, default=usual.searches_per_second)
    parser.add_argument("--pause-seconds", type=float, default=usual.pause_seconds, help="between the steps")
    parser.add_argument("--seed", type=int, default=usual.seed, help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="one JSON document and nothing else")
    return parser


def main() -> int:
    """Parse the command line, run, print."""
    options = make_parser().parse_args()
    load = Load(
        workers=options.workers,
        writers=options.writers,
        writes_per_second=options.writes_per_second,
        searchers=options.searchers,
        searches_per_second=options.searches_per_second,
        pause_seconds=options.pause_seconds,
        seed=options.seed,
    )
    with own_server(options.major) as server:
        results = measure(server.dsn(), options.documents, options.corpus, load)
    if options.json:
        print(json.dumps({"settings": vars(options), **results, "machine": machine()}, indent=2, default=str))
    else:
        print(describe_machine(machine()))
        for name, value in results.items():
            print(f"{name}: {_line(value)}")
    return 1 if results["violations"] else 0


def _line(value: object) -> str:
    if isinstance(value, dict):
        return "".join(f"\n  {name}: {inner}" for name, inner in value.items())
    return str(value)


if __name__ == "__main__":
    sys.exit(main())
