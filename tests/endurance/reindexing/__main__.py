"""Replace the index of a collection under load, and measure the effect on its users.

    python -m tests.endurance.reindexing [--documents 50000] [--corpus F.jsonl.gz] [--kills-per-minute 6]

Runs on a dedicated server with the shipped durability settings. Writers insert, edit and delete in plain SQL,
searchers continuously query families for which each recipe finds a different half, workers process changes and are
killed with -9 if wanted; meanwhile `nearsim reindex` builds a generation with another recipe, promotes it, rolls back,
promotes it again and drops the old one. Then the queue is drained, and every signature, band row, pair and cluster is
compared with the oracle of the soak. The exit code is 1 if an answer mixed generations, a search failed, or the final
generation is wrong.
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from benchmarks.measure import machine
from benchmarks.options import CorpusFile, Documents, Major, Seed
from benchmarks.own_server import own_server
from benchmarks.truth import read_documents
from tests.endurance.reindexing import evaluation, scenario
from tests.endurance.reindexing.checks import check
from tests.endurance.reindexing.scenario import Load
from tests.endurance.reindexing.texts import make_crowd, repeat_corpus

_USUAL = Load()


def measure(url: str, documents: int, corpus: Path | None, load: Load) -> dict[str, object]:
    """Run once in an empty database, with `documents` documents in the collection."""
    count = documents - 3 * load.families
    crowd = (
        repeat_corpus(read_documents(corpus), count, load.seed) if corpus else make_crowd(count, load.seed)
    )
    world = scenario.make_world(url, crowd, load)
    seen = scenario.run(world, load)
    counted, found = check(world, seen.generation_after, seen.left)
    return {**evaluation.figures(seen, load), **counted, "violations": evaluation.violations(seen) | found}


def main(
    documents: Documents = 50_000,
    corpus: CorpusFile = None,
    workers: Annotated[int, Option(help="Number of worker processes.")] = _USUAL.workers,
    kills_per_minute: Annotated[float, Option(help="Kills of a random worker.")] = _USUAL.kills_per_minute,
    writers: Annotated[int, Option(help="Number of writing processes.")] = _USUAL.writers,
    writes_per_second: Annotated[float, Option(help="Of all writers.")] = _USUAL.writes_per_second,
    searchers: Annotated[int, Option(help="Number of searching processes.")] = _USUAL.searchers,
    searches_per_second: Annotated[float, Option(help="Of all searchers.")] = _USUAL.searches_per_second,
    searches_after: Annotated[int, Option(help="Searches awaited after each step.")] = _USUAL.searches_after,
    seed: Seed = _USUAL.seed,
    major: Major = 18,
) -> None:
    """Run once and print one JSON document."""
    load = Load(
        workers=workers,
        kills_per_minute=kills_per_minute,
        writers=writers,
        writes_per_second=writes_per_second,
        searchers=searchers,
        searches_per_second=searches_per_second,
        searches_after=searches_after,
        seed=seed,
    )
    with own_server(major) as server:
        results = measure(server.dsn(), documents, corpus, load)
    print(json.dumps({**results, "machine": machine()}, indent=2, ensure_ascii=False, default=str))
    sys.exit(1 if results["violations"] else 0)


if __name__ == "__main__":
    typer.run(main)
