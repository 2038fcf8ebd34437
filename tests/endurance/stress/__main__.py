"""Writers and workers on a live index, which are killed with -9; then a comparison with a fresh build.

    python -m tests.endurance.stress --files A.jsonl.gz --take 11000 [--files B.jsonl.gz --take 9000] [--kills 10]

Plays inserts, edits and deletes, kills workers and the server meanwhile, drains the queue, builds the same documents
again, and compares with exact truth and independently computed components; the exit code is 1 if there are
violations.
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from benchmarks.measure import machine
from benchmarks.options import RECIPE, Changes, Major, RecipeFile, Seed
from nearsim_db.similarity.recipe import load, override
from tests.endurance.stress.shingles import require_plain
from tests.endurance.stress.stress import StressPlan, run_stress, shuffled_documents


def main(
    files: Annotated[list[Path], Option(metavar="FILE")],
    take: Annotated[list[int], Option(metavar="N", help="Number of documents of each file.")],
    family: Annotated[int, Option(help="Number of texts of one template.")] = 2_000,
    workers: Annotated[int, Option(help="Number of worker processes.")] = 2,
    writers: Annotated[int, Option(help="Number of writing processes.")] = 2,
    kills: Annotated[int, Option(help="Number of kills of workers.")] = 0,
    server_kills: Annotated[int, Option(help="Number of kills of the server.")] = 0,
    recipe: RecipeFile = RECIPE,
    changes: Changes = ["match.bucket_limit=64"],
    seed: Seed = 1,
    major: Major = 18,
) -> None:
    """Run the stress test once and print one JSON document."""
    rules = override(load(recipe), changes)
    require_plain(rules)
    documents = shuffled_documents(files, take, family, seed)
    found = run_stress(major, documents, rules, StressPlan(workers, writers, kills, server_kills, seed))
    print(json.dumps({**found, "machine": machine()}, indent=2, ensure_ascii=False, default=str))
    sys.exit(1 if found.get("violations") else 0)


if __name__ == "__main__":
    typer.run(main)
