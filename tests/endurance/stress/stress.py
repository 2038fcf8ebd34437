"""Writers and workers that are killed at random, and a check that nothing was lost and nothing is wrong
afterwards.
"""

import multiprocessing
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import numpy as np

from benchmarks.corpus import Corpus, generator
from benchmarks.feed import make_templates
from benchmarks.living_system import COLLECTION, PROFILE, System, Workers, living_system
from benchmarks.truth import read_documents
from nearsim_db.index import Index
from nearsim_db.records import Document
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.database import Database
from tests.endurance.stress.checks import violations
from tests.endurance.stress.contents import Text, read_contents, read_large_buckets
from tests.endurance.stress.script import Write, draw_script, final_texts, play

_FRESH = "fresh"
_POLL_SECONDS = 0.02
_MOST_WAITING = 1_000
# The same order of doc_ids makes the same heads and anchors, the same times the same survivors.
_COPY = """
INSERT INTO nearsim.document (collection_id, external_id, title, body, created_at)
SELECT %s, external_id, title, body, created_at FROM nearsim.document WHERE collection_id = %s ORDER BY doc_id
"""
_LEFT = """
SELECT 'change', NULL, NULL, NULL, NULL, count(*) FROM nearsim.change HAVING count(*) > 0
UNION ALL
SELECT stage, attempts, lease_id, due_at > clock_timestamp(), error, count(*)
FROM nearsim.queued_work GROUP BY 1, 2, 3, 4, 5
"""
_GENERATION = """
SELECT generation_id FROM nearsim.generation JOIN nearsim.profile USING (profile_id)
WHERE collection_id = %s AND state = 'live'
"""


@dataclass(frozen=True, slots=True)
class StressPlan:
    """The processes of a run, and how often to kill a worker and the server during writes."""

    workers: int
    writers: int
    kills: int
    server_kills: int
    seed: int


def shuffled_documents(files: Sequence[Path], take: Sequence[int], family: int, seed: int) -> list[Document]:
    """Return the first documents of each file, their ids made distinct, and a family of a template, shuffled."""
    rng = generator(np.random.SeedSequence(seed))
    documents = [
        replace(one, external_id=f"{number}-{one.external_id}")
        for number, (file, most) in enumerate(zip(files, take, strict=True))
        for one in read_documents(file)[:most]
    ]
    if family:
        (template,) = make_templates(Corpus(1_000, seed), 1, rng)
        texts = [template.fill(number, rng) for number in range(family)]
        documents += [Document(f"t-{number}", *text) for number, text in enumerate(texts)]
    return [documents[place] for place in rng.permutation(len(documents)).tolist()]


def run_stress(
    major: int, documents: Sequence[Document], recipe: Recipe, plan: StressPlan
) -> dict[str, object]:
    """Write, kill, drain, check. Without workers, `nearsim build` ingests everything at the end."""
    scripts = [
        draw_script(documents[place :: plan.writers], generator(np.random.SeedSequence([plan.seed, place])))
        for place in range(plan.writers)
    ]
    with living_system(major, recipe) as system:
        started = time.perf_counter()
        results = run_load(system, scripts, plan)
        written = time.perf_counter() - started
        arguments = ("worker", "--once") if plan.workers else ("build",)
        results["exit code of the drain"] = system.run(*arguments, "--collection", COLLECTION)
        drained = time.perf_counter() - started
        results |= {"seconds": {"written": round(written, 1), "drained": round(drained, 1)}}
        figures, found = check(system, final_texts(scripts), recipe)
    if results["exit code of the drain"] != 0:
        found["exit code of the drain"] = {"examples": results["exit code of the drain"]}
    # One that was started a moment before, after a kill, has not come to handle signals yet, nor taken any work.
    codes = results["exit codes of workers at SIGTERM"]
    if not isinstance(codes, list) or not set(codes) <= {0, -signal.SIGTERM}:
        found["exit codes of workers at SIGTERM"] = {"examples": codes}
    return results | figures | {"violations": found}


def run_load(system: System, scripts: Sequence[Sequence[Write]], plan: StressPlan) -> dict[str, object]:
    """Run writers and workers until all is written, killing them at random points."""
    context = multiprocessing.get_context("spawn")
    counts = [context.Value("q", 0) for _ in scripts]
    most_waiting = _MOST_WAITING if plan.workers else 2**31
    writers = [
        context.Process(
            target=play, args=(system.url, system.collection_id, script, plan.seed, most_waiting, count)
        )
        for script, count in zip(scripts, counts, strict=True)
    ]
    workers = Workers(system, plan.workers)
    for writer in writers:
        writer.start()
    try:
        killed = _kill_at_random_points(system, workers, writers, counts, sum(map(len, scripts)), plan)
    finally:
        for writer in writers:
            writer.kill()
        codes = workers.stop()
    return {
        "writes": {kind: _count(scripts, kind) for kind in ("insert", "update", "delete")},
        "workers killed": killed.count("worker"),
        "servers killed": killed.count("server"),
        "workers that ended by themselves": workers.ended,
        "exit codes of workers at SIGTERM": codes,
    }


def draw_kills(plan: StressPlan, writes: int) -> list[tuple[int, str]]:
    """Return after how many writes to kill which process, the last first."""
    rng = generator(np.random.SeedSequence([plan.seed, writes]))
    whom = ["worker"] * (plan.kills if plan.workers else 0) + ["server"] * plan.server_kills
    return sorted(zip(rng.integers(0, writes, len(whom)).tolist(), whom, strict=True), reverse=True)


def _kill_at_random_points(
    system: System,
    workers: Workers,
    writers: "Sequence[multiprocessing.context.SpawnProcess]",
    counts: "Sequence[Synchronized[int]]",
    writes: int,
    plan: StressPlan,
) -> list[str]:
    """Kill at the drawn points until the writers are done; return the processes killed. Raises RuntimeError if a
    writer failed.
    """
    rng = generator(np.random.SeedSequence(plan.seed))
    kills, killed = draw_kills(plan, writes), list[str]()
    while kills or any(writer.is_alive() for writer in writers):
        if any(writer.exitcode for writer in writers):
            raise RuntimeError("a writer failed")
        if kills and kills[-1][0] <= sum(count.value for count in counts):
            _, whom = kills.pop()
            if whom == "worker":
                workers.kill(int(rng.integers(plan.workers)))
            else:
                system.kill_server()
            killed.append(whom)
        workers.restart_exited()
        time.sleep(_POLL_SECONDS)
    return killed


def check(
    system: System, written: dict[str, Text], recipe: Recipe
) -> tuple[dict[str, int], dict[str, dict[str, object]]]:
    """Build the same documents again beside the live index and compare: counts and violations."""
    with system.connect() as connection:
        left = connection.execute(_LEFT).fetchall()
        with Database.connect(system.url) as database:
            fresh_id = database.create_collection(_FRESH).collection_id
        connection.execute(_COPY, (fresh_id, system.collection_id))
        with Index.connect(system.url, collection=_FRESH) as index:
            index.create_profile(PROFILE, recipe)
        row = connection.execute(_GENERATION, (fresh_id,)).fetchone()
        assert row is not None
        generation_id = int(str(row[0]))
        living = read_contents(connection, system.collection_id, system.generation_id)
        fresh = read_contents(connection, fresh_id, generation_id)
        large = read_large_buckets(connection, generation_id, recipe.match.bucket_limit)
    found = violations(living, fresh, written, large, recipe)
    if left:
        found["work left"] = {"count": sum(int(str(row[-1])) for row in left), "examples": left}
    stored, built = living.expanded(), fresh.expanded()
    figures = {
        "documents": len(living.texts),
        "pairs stored": len(stored),
        "pairs of the fresh build": len(built),
        "pairs beyond the fresh build": len(stored - built),
        "clusters": len(living.partition()),
        "clusters of the fresh build": len(fresh.partition()),
        "documents in large buckets": len(large),
    }
    return figures, found


def _count(scripts: Sequence[Sequence[Write]], kind: str) -> int:
    return sum(write.kind == kind for script in scripts for write in script)
