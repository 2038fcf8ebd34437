"""The run: writers, searchers and workers, some killed, while a generation is built, promoted, rolled back, dropped."""

import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Semaphore
from typing import Any
from unittest.mock import patch

import psycopg

from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.reindex.reindex import promote
from nearsim_db.index import Index
from nearsim_db.records import Document, GenerationId
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations import generation_states
from nearsim_db.store.generations.generation_rows import Generation, State
from tests.endurance.reindexing.searching import Search, search
from tests.endurance.reindexing.texts import SETTINGS_AFTER, Family, make_families, recipe_before
from tests.endurance.reindexing.watching import Watched, watch
from tests.endurance.reindexing.writing import Text, Written, final_documents, write

COLLECTION, PROFILE = "living", "benchmark"
QUICK_TURNS = 6  # there and back, one after the other: the quickest met the least noise
_JOIN_SECONDS = 60.0
_COPY = "COPY nearsim.document (collection_id, external_id, title, body) FROM STDIN"
_IDS = "SELECT external_id, doc_id FROM nearsim.document WHERE collection_id = %s AND external_id = ANY(%s)"
_LIVE = """
SELECT generation_id FROM nearsim.generation JOIN nearsim.profile USING (profile_id)
WHERE collection_id = %s AND state = 'live'
"""


@dataclass(frozen=True, slots=True)
class Load:
    """The load beside the reindex. Writers and searchers wait for a lock for at most `most_waited_ms`; a random worker
    is killed and replaced `kills_per_minute` times; `searches_after` are awaited after each step.
    """

    workers: int = 1
    kills_per_minute: float = 0.0
    writers: int = 2
    writes_per_second: float = 200.0
    searchers: int = 2
    searches_per_second: float = 100.0
    families: int = 100
    most_waited_ms: int = 50
    searches_after: int = 500
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Step:
    """An operation on generations, by this machine's clock; `held` are the seconds of attempts to promote."""

    name: str
    began: float
    ended: float
    held: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """A collection with one live generation, and its documents."""

    url: str
    collection_id: int
    generation_before: int
    families: list[Family]
    crowd: list[Document]
    doc_ids: dict[str, int]


@dataclass(frozen=True, slots=True)
class Seen:
    """All observations of a run, and the texts that the writers left."""

    steps: list[Step]
    writes: list[Written]
    searches: list[Search]
    watched: Watched
    left: dict[str, Text]
    generation_after: int
    exit_codes: list[int]


def make_world(url: str, crowd: Sequence[Document], load: Load) -> World:
    """Copy the documents into a collection and build the generation to be replaced."""
    families = make_families(load.families, load.seed)
    asked = [one for family in families for one in (family.asked, family.reordered, family.shortened)]
    with Index.connect(url, collection=COLLECTION) as index, psycopg.connect(url) as connection:
        collection_id = index.database.create_collection(COLLECTION).collection_id
        with connection.cursor().copy(_COPY) as copy:
            for one in (*asked, *crowd):
                copy.write_row((collection_id, one.external_id, one.title, one.body))
        connection.commit()
        index.create_profile(PROFILE, recipe_before())
        names = [one.asked.external_id for one in families]
        doc_ids = {
            str(name): int(number) for name, number in connection.execute(_IDS, (collection_id, names))
        }
        generation_id = read_live(connection, collection_id)
    return World(url, collection_id, generation_id, families, list(crowd), doc_ids)


def read_live(connection: "psycopg.Connection[tuple[Any, ...]]", collection_id: int) -> int:
    """Return the live generation."""
    row = connection.execute(_LIVE, (collection_id,)).fetchone()
    assert row is not None
    return int(row[0])


def run(world: World, load: Load) -> Seen:
    """Start the load, replace the generation in all its steps, stop the load; nothing is drained yet."""
    with _workers(world.url, load) as exit_codes, _load_running(world, load) as (searched, stop):
        steps = list(_reindex(world, lambda: _await_searches(searched, load.searches_after)))
        writes, searches, watched = stop()
    left = {one.external_id: (one.title, one.body) for one in _never_written(world)}
    for place, documents in enumerate(_shares(world, load)):
        done = sum(not refused for _, _, refused in writes[place])
        left |= final_documents(documents, f"new-{place}", load.seed, done)
    with psycopg.connect(world.url) as connection:
        after = read_live(connection, world.collection_id)
    return Seen(
        steps,
        [one for results in writes for one in results],
        [one for results in searches for one in results],
        watched,
        left,
        after,
        exit_codes,
    )


def _await_searches(searched: Semaphore, count: int) -> None:
    """Wait until so many searches that end from now on were answered."""
    while searched.acquire(block=False):
        continue
    for _ in range(count):
        if not searched.acquire(timeout=_JOIN_SECONDS):
            raise RuntimeError("the searchers do not search")


def _reindex(world: World, rest: Callable[[], None]) -> Iterator[Step]:
    yield _timed("before", rest)
    with Database.connect(world.url) as database:
        reindex = Reindex(database, COLLECTION, PROFILE)
        yield _timed("build", lambda: reindex.start(settings=[*SETTINGS_AFTER]))
        with promotion_seconds() as noted:
            turns: Sequence[tuple[str, Callable[[], object]]] = (
                ("promote", reindex.promote),
                ("rollback", reindex.rollback),
                ("promote again", lambda: reindex.promote(_retired(reindex).generation_id)),
            )
            for name, turn in turns:
                noted.clear()
                step = _timed(name, turn)
                yield Step(step.name, step.began, step.ended, tuple(noted))
                yield _timed(f"after {name}", rest)
            for number in range(1, QUICK_TURNS + 1):
                noted.clear()
                other = _retired(reindex)
                step = _timed(f"turn {number}", lambda: promote(database, other, ["retired"]))  # noqa: B023
                yield Step(step.name, step.began, step.ended, tuple(noted))
            yield _timed("drop", reindex.drop)
            yield _timed("after drop", rest)


def _retired(reindex: Reindex) -> Generation:
    return next(one.generation for one in reindex.status() if one.generation.state == "retired")


def _timed(name: str, action: Callable[[], object]) -> Step:
    print(name, file=sys.stderr, flush=True)
    began = time.monotonic()
    action()
    return Step(name, began, time.monotonic())


@contextmanager
def promotion_seconds() -> Iterator[list[float]]:
    """Return the seconds of each attempt to promote: a single-statement transaction, so no lock is held longer."""
    noted: list[float] = []
    usual = generation_states.promote

    def timed(connection: Connection, generation: Generation, before: Sequence[State]) -> GenerationId | None:
        began = time.monotonic()
        try:
            return usual(connection, generation, before)
        finally:
            noted.append(time.monotonic() - began)

    with patch.object(generation_states, "promote", timed):
        yield noted


def command(url: str, *arguments: str) -> None:
    """Run a nearsim command to its end. Raises CalledProcessError."""
    subprocess.run(_command(*arguments), env=_environment(url), stdout=subprocess.DEVNULL, check=True)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "nearsim_db", *arguments]


def _environment(url: str) -> dict[str, str]:
    return {**os.environ, "NEARSIM_DATABASE_URL": url}


@contextmanager
def _workers(url: str, load: Load) -> Iterator[list[int]]:
    """Run worker processes for the length of the block, and wait for their exit; then the list has the exit codes.

    kill -9 ends random ones, which are replaced.
    """
    ended, rng, codes = threading.Event(), random.Random(load.seed), list[int]()

    def start() -> "subprocess.Popen[bytes]":
        arguments = _command("worker", "--collection", COLLECTION, "--quiet")
        return subprocess.Popen(arguments, env=_environment(url))

    def kill() -> None:
        while not ended.wait(60 * rng.expovariate(load.kills_per_minute)):
            place = rng.randrange(len(workers))
            workers[place].kill()
            workers[place].wait()
            workers[place] = start()

    workers = [start() for _ in range(load.workers)]
    killer = threading.Thread(target=kill if load.kills_per_minute and workers else ended.wait)
    killer.start()
    try:
        yield codes
    finally:
        ended.set()
        killer.join()
        for worker in workers:
            worker.terminate()
        codes += [worker.wait(_JOIN_SECONDS) for worker in workers]


@contextmanager
def _load_running(
    world: World, load: Load
) -> Iterator[tuple[Semaphore, Callable[[], tuple[list[Any], list[Any], Watched]]]]:
    """Run writers, searchers and the sampler. The block receives a semaphore that is released by each search, and a
    function that stops them and returns their records.
    """
    context = multiprocessing.get_context("spawn")
    stopping, searched = context.Event(), context.Semaphore(0)
    patient = _impatient(world.url, load.most_waited_ms)
    warm = [context.Event() for _ in range(load.searchers)]
    tasks: list[tuple[Callable[..., None], tuple[object, ...]]] = [(watch, (world.url, stopping))]
    for place, documents in enumerate(_shares(world, load)):
        rate = load.writes_per_second / load.writers
        own = (patient, world.collection_id, documents, f"new-{place}", load.seed, rate, stopping)
        tasks.append((write, own))
    for ready in warm:
        rate = load.searches_per_second / load.searchers
        about = (COLLECTION, world.families, world.doc_ids, world.generation_before)
        tasks.append((search, (patient, *about, rate, ready, searched, stopping)))
    pipes = [context.Pipe(duplex=False) for _ in tasks]
    processes = [
        context.Process(target=target, args=(*arguments, sending))
        for (target, arguments), (_, sending) in zip(tasks, pipes, strict=True)
    ]

    def stop() -> tuple[list[Any], list[Any], Watched]:
        stopping.set()
        results: list[Any] = [
            receiving.recv() if receiving.poll(_JOIN_SECONDS) else [] for receiving, _ in pipes
        ]
        for process in processes:
            process.join(_JOIN_SECONDS)
        return results[1 : 1 + load.writers], results[1 + load.writers :], results[0]

    for process in processes:
        process.start()
    try:
        for ready in warm:
            ready.wait(_JOIN_SECONDS)
        yield searched, stop
    finally:
        for process in processes:
            process.kill()


def _impatient(url: str, milliseconds: int) -> str:
    return f"{url}{'&' if '?' in url else '?'}options=-c%20lock_timeout%3D{milliseconds}"


def _shares(world: World, load: Load) -> list[list[Document]]:
    return [world.crowd[place :: load.writers] for place in range(load.writers)]


def _never_written(world: World) -> list[Document]:
    return [one for family in world.families for one in (family.asked, family.reordered, family.shortened)]
