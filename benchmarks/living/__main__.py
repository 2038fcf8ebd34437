"""The live index under load from other applications: plain-SQL writers, and `nearsim worker` processes.

    python -m benchmarks.living throughput [--documents 200000] [--new 20000] [--workers 2] [--writers 1]
    python -m benchmarks.living latency [--copies 100]
    python -m benchmarks.living lookup [--lookups 2000]
    python -m benchmarks.living speed: lookup, latency and throughput on one index
    python -m benchmarks.living stress --files A.jsonl.gz B.jsonl.gz --take 11000 9000 [--workers 3] [--kills 10]

Each run has a dedicated server with the shipped durability settings. The first four index a synthetic corpus, 2
% of whose documents are in families of templates with buckets over the limit, and add more of the same.
`stress` plays inserts, edits and deletes, kills workers and the server meanwhile, drains the queue, builds the
same documents again, and compares; its exit code is 1 if there are violations.
"""

import argparse
import json
import sys
from itertools import islice
from pathlib import Path

from benchmarks.living.feed import mixed_documents
from benchmarks.living.shingles import require_plain
from benchmarks.living.speed import measure_latency, measure_lookup, measure_throughput
from benchmarks.living.stress import StressPlan, run_stress, shuffled_documents
from benchmarks.living.system import living_system
from benchmarks.measure import machine
from benchmarks.own_server import binaries_by_major
from nearsim_db.similarity.recipe import Recipe, load, override

RECIPE = Path(__file__).parents[1] / "recipes" / "w3.toml"


def run_speed(options: argparse.Namespace, recipe: Recipe) -> dict[str, object]:
    """Index the corpus, then run the requested measurements."""
    wanted = ("lookup", "latency", "throughput") if options.command == "speed" else (options.command,)
    total = options.documents + options.lookups + options.new
    documents = mixed_documents(total, options.seed, options.hot_share)
    with living_system(options.major, recipe, islice(documents, options.documents)) as system:
        asked, new = list(islice(documents, options.lookups)), list(documents)
        results: dict[str, object] = {"indexed": options.documents}
        if "lookup" in wanted:
            results["lookup"] = measure_lookup(system, asked)
        if "latency" in wanted:
            results["latency"] = measure_latency(system, options.copies)
        if "throughput" in wanted:
            results["throughput"] = measure_throughput(
                system, new, options.workers, options.writers, options.most_waiting
            )
    return results


def run_checks(options: argparse.Namespace, recipe: Recipe) -> dict[str, object]:
    """Run the stress test once."""
    require_plain(recipe)
    documents = shuffled_documents(options.files, options.take, options.family, options.seed)
    plan = StressPlan(options.workers, options.writers, options.kills, options.server_kills, options.seed)
    return run_stress(options.major, documents, recipe, plan)


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    majors = sorted(binaries_by_major(), reverse=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--major", type=int, choices=majors, default=majors[0], help="default: %(default)s")
    shared.add_argument("--recipe", type=Path, default=RECIPE, metavar="RECIPE.toml")
    shared.add_argument("--bucket-limit", type=int, default=64, help="default: %(default)s")
    shared.add_argument("--workers", type=int, default=2, help="default: %(default)s")
    shared.add_argument("--writers", type=int, default=2, help="default: %(default)s")
    shared.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.living", description=__doc__, formatter_class=layout
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("throughput", "latency", "lookup", "speed"):
        command = commands.add_parser(name, parents=[shared])
        command.add_argument("--documents", type=int, default=200_000, help="indexed (default: %(default)s)")
        command.add_argument(
            "--hot-share", type=float, default=0.02, help="in families (default: %(default)s)"
        )
        command.add_argument("--new", type=int, default=20_000, help="to insert (default: %(default)s)")
        command.add_argument("--lookups", type=int, default=2_000, help="default: %(default)s")
        command.add_argument("--copies", type=int, default=100, help="default: %(default)s")
        command.add_argument("--most-waiting", type=int, default=5_000, help="default: %(default)s")
    stress = commands.add_parser("stress", parents=[shared])
    stress.add_argument("--files", type=Path, nargs="+", required=True, metavar="FILE.jsonl.gz")
    stress.add_argument("--take", type=int, nargs="+", required=True, help="documents of each file")
    stress.add_argument("--family", type=int, default=2_000, help="of a template (default: %(default)s)")
    stress.add_argument("--kills", type=int, default=0, help="kill -9 of workers")
    stress.add_argument("--server-kills", type=int, default=0, help="kill -9 of the server")
    return parser


def main() -> int:
    """Run one command and print one JSON document."""
    options = make_parser().parse_args()
    recipe = override(load(options.recipe), [f"match.bucket_limit={options.bucket_limit}"])
    run = run_checks if options.command == "stress" else run_speed
    results = run(options, recipe)
    results = {"settings": vars(options), **results, "machine": machine()}
    print(json.dumps(results, indent=2, ensure_ascii=False, default=str))
    return 1 if results.get("violations") else 0


if __name__ == "__main__":
    sys.exit(main())
