"""Child processes that help with a build: they share the work, may be killed, and end with their parent."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Index
from nearsim_db.errors import NearsimError
from nearsim_db.indexing import build, build_plan, catch_up
from nearsim_db.indexing.catch_up import Helpers, helpers
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.helper_process import HelperProcess
from nearsim_db.records import GenerationId, silent
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.work.build_slices import read_progress
from tests.builders.reindex_world import jaccard_pairs, pairs_of, texts_of
from tests.builders.relations import leaves_of
from tests.builders.workers import BLOCKED, PATIENCE_SECONDS, ask, running, wait_until
from tests.indexing.test_build_slices import (
    RECIPES,
    add_profile,
    assert_built_alike,
    context_of,
    fill,
    small_slices,
)

pytestmark = pytest.mark.slow("child processes")


@pytest.fixture
def index(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index with a profile that was built by one process, and a newer one to be built in many slices."""
    monkeypatch.setattr(catch_up, "_LEAST_DOCUMENTS", 0)
    fill(database_url, RECIPES["fast_similarity"])
    with Index.connect(database_url) as opened:
        build.build(opened.database.engine, context_of(opened), silent)
        add_profile(database_url, "sliced")
        small_slices(monkeypatch, 7, 300)
        yield opened


ALL_SIGNED = "SELECT NOT EXISTS (SELECT FROM nearsim_index.build_slice WHERE stage = 'sign' AND NOT done)"


def test_processes_build_the_same_index(index: Index, database_url: str) -> None:
    context = context_of(index)
    index.database.jobs = 3
    with helpers(index.database, context, context.warn) as helping:
        build.build(index.database.engine, context, silent, helping.check)
    assert_built_alike(database_url)
    second = leaves_of(database_url)[1].generation_id
    assert pairs_of(index.database, second) == jaccard_pairs(texts_of(index.database), 0.3)


def test_a_process_does_the_slices_that_it_finds(index: Index, database_url: str) -> None:
    context = context_of(index)
    with (
        index.database.engine.connect() as connection,
        psycopg.connect(database_url, autocommit=True) as asking,
    ):
        build_plan.plan_signing(connection, context)
        started = Helpers(context.warn)
        started.add(HelperProcess(database_url, context.generation.generation_id, 1))
        wait_until(asking, ALL_SIGNED)
        started.close()
        assert read_progress(connection, context.leaves, "sign").done == 40
    build.build(index.database.engine, context, silent)
    assert_built_alike(database_url)


def kill(started: Helpers) -> None:
    """Kill the only process, if it has not ended."""
    for one in started.processes:
        one.process.kill()
        one.process.wait()


class Stopped(Exception):
    """Raised to end a build within a stage."""


def build_until(index: Index, step: str) -> Context:
    """Build the newest generation until a step has begun."""
    context = context_of(index)

    def progress(now: str, done: int, total: int | None) -> None:
        if now == step:
            raise Stopped

    with pytest.raises(Stopped):
        build.build(index.database.engine, context, progress)
    return context_of(index)


@pytest.mark.parametrize("step", ["sign", "candidates"])
def test_a_slice_of_a_killed_process_is_done_by_another(index: Index, database_url: str, step: str) -> None:
    context, warnings = build_until(index, step), list[str]()
    engine, generation_id = index.database.engine, context.generation.generation_id
    with psycopg.connect(database_url, autocommit=True) as asking:
        started = Helpers(warnings.append)
        with engine.connect() as holding:
            # The process waits for this lock once it has taken its slice.
            take_transaction_lock(holding, Lock.STORE, generation_id)
            started.add(HelperProcess(database_url, generation_id, 1))
            wait_until(asking, BLOCKED)
            kill(started)
            started.check()
            holding.rollback()
    assert warnings == ["a process that helped with the build was killed by signal 9"]
    build.build(engine, context, silent)
    assert_built_alike(database_url)


def test_a_process_killed_while_bands_are_loaded_delays_nothing(index: Index, database_url: str) -> None:
    context, warnings = build_until(index, "bands"), list[str]()
    generation_id = context.generation.generation_id
    with psycopg.connect(database_url, autocommit=True) as asking:
        others = ask(asking, "SELECT array_agg(pid) FROM pg_stat_activity")
        connected = sql.SQL(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> ALL ({}))"
        ).format(others)
        started = Helpers(warnings.append)
        started.add(HelperProcess(database_url, generation_id, 1))
        wait_until(asking, connected.as_string(asking))

        def progress(now: str, done: int, total: int | None) -> None:
            if now == "bands":
                kill(started)

        build.build(index.database.engine, context, progress, started.check)
    assert warnings == ["a process that helped with the build was killed by signal 9"]
    assert_built_alike(database_url)


def test_a_worker_helps_with_a_build_that_another_process_leads(index: Index, database_url: str) -> None:
    context = context_of(index)
    with (
        index.database.engine.connect() as connection,
        index.database.builder(context.collection_id),
        psycopg.connect(database_url, autocommit=True) as asking,
    ):
        build_plan.plan_signing(connection, context)
        with running(database_url):
            wait_until(asking, ALL_SIGNED)
        build.build(index.database.engine, context, silent)
    assert_built_alike(database_url)


def test_errors_of_a_process_are_those_of_the_build(index: Index, database_url: str) -> None:
    started = Helpers(lambda message: None)
    process = HelperProcess(database_url, GenerationId(99), 1)
    started.add(process)
    process.process.wait()
    with pytest.raises(NearsimError, match="generation 99 does not exist"):
        started.check()


def test_processes_end_with_their_parent(index: Index, database_url: str) -> None:
    context = context_of(index)
    with index.database.engine.connect() as connection:
        build_plan.plan_signing(connection, context)
    parent = (
        "import sys, os; from nearsim_db.indexing.catch_up import Helpers; "
        "from nearsim_db.indexing.helper_process import HelperProcess; h = Helpers(print); "
        "one = HelperProcess(sys.argv[1], int(sys.argv[2]), 1); h.add(one); print(one.process.pid, flush=True); "
        "sys.stdin.readline(); os.kill(os.getpid(), 9)"
    )
    with (
        psycopg.connect(database_url, autocommit=True) as asking,
        index.database.engine.connect() as holding,
        subprocess.Popen(
            [sys.executable, "-c", parent, database_url, str(context.generation.generation_id)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as killing,
    ):
        take_transaction_lock(holding, Lock.STORE, context.generation.generation_id)
        wait_until(asking, BLOCKED)
        output, _ = killing.communicate("\n")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while is_running(int(output)):
            assert time.monotonic() < deadline
            asking.execute("SELECT pg_sleep(0.02)")
        holding.rollback()


def is_running(process: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
