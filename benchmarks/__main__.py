"""Run a benchmark: python -m benchmarks NAME [OPTIONS]. After the result, prints the machine, its load and versions."""

import importlib
import json
import os
import sys
from collections.abc import Mapping

import typer

from benchmarks.measure import describe_machine, machine

NAMES: Mapping[str, tuple[str, str]] = {
    "corpus": ("corpus:main", "write the synthetic corpus"),
    "templates": ("templates:main", "write a family of texts of one template among others"),
    "accuracy": ("accuracy:main", "recall and precision of a recipe against brute force"),
    "labels": ("labels:main", "precision and recall of presets on pairs that people labelled"),
    "peers": ("peers.compare:dedupe", "de-duplicate a file with nearsim and other tools, in turns"),
    "peer-lookups": ("peers.compare:lookups", "look texts up with nearsim and other tools"),
    "growth": ("growth:sizes", "ingest corpora of growing size, by stage"),
    "skew": ("growth:skew", "ingest skewed corpora of one size, in turns"),
    "lookups": ("lookups:main", "latency of look-ups, and the cost of isolation"),
    "collections": ("collections:main", "1 to 10,000 collections: plans, locks, workers, commands, memory"),
    "speed": ("speed:main", "throughput, latency and look-ups of the live index"),
    "scale-out": ("scale_out:main", "one server and Citus clusters"),
    "shards": ("shards:main", "one server and Citus clusters with few and many shards"),
    "rebalancing": ("rebalancing:main", "a node is added to a Citus cluster under load"),
    "attached-texts": ("attached:texts", "texts of an attached table beside ingested ones"),
    "attached-collections": ("attached:collections", "a table attached as many collections beside one"),
    "startup": ("startup:main", "start-up of commands"),
    "nearest": ("nearest:main", "the nearest of short records, beside the exact join"),
    "partial-copies": ("partial_copies:main", "write a set of partial copies of stories"),
    "containment": ("containment:main", "partial copies beside brute force and LSH Ensemble"),
    "containment-index": ("containment:index", "build and look-ups of an index of partial copies"),
}


def main() -> None:
    """Run the benchmark named by the first argument, and print what it returns: Markdown, or a mapping as JSON."""
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        listed = "\n".join(f"  {name:14} {purpose}" for name, (_, purpose) in NAMES.items())
        print(f"python -m benchmarks NAME [--help]\n\n{listed}")
        sys.exit(0 if sys.argv[1:] in ([], ["--help"]) else 2)
    name = sys.argv.pop(1)
    module, _, function = NAMES[name][0].partition(":")
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(getattr(importlib.import_module(f"benchmarks.{module}"), function))
    result = app(prog_name=f"python -m benchmarks {name}", standalone_mode=False)
    facts = machine() | {"load": f"{os.getloadavg()[0]:.1f}"}
    if isinstance(result, Mapping):
        print(json.dumps({**result, "machine": facts}, indent=2, ensure_ascii=False, default=str))
    elif isinstance(result, str):
        print(f"{result}\n\n{describe_machine(facts)}")


if __name__ == "__main__":
    main()
