"""Threads and worker processes that take slices of one build: they give the same index, and their errors are raised."""

from collections.abc import Iterator

import psycopg
import pytest

from nearsim_db import Index
from nearsim_db.errors import NearsimError
from nearsim_db.indexing import build, build_plan
from nearsim_db.indexing.slice_taker import Taker, take_slices
from nearsim_db.records import silent
from nearsim_db.store.work.build_slices import SlicedStage
from tests.builders.reindex_world import jaccard_pairs, pairs_of, texts_of
from tests.builders.relations import leaves_of
from tests.builders.workers import running, wait_until
from tests.indexing.test_build_slices import (
    RECIPES,
    add_profile,
    assert_built_alike,
    context_of,
    fill,
    small_slices,
)

ALL_SIGNED = "SELECT NOT EXISTS (SELECT FROM nearsim_index.build_slice WHERE stage = 'sign' AND NOT done)"


@pytest.fixture
def index(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index with a profile that was built by one thread, and a newer one to be built in many slices by three."""
    fill(database_url, RECIPES["fast_similarity"])
    monkeypatch.setenv("NEARSIM_THREADS", "1")
    with Index.connect(database_url) as single:
        build.build(single.database.engine, context_of(single), silent)
    add_profile(database_url, "sliced")
    small_slices(monkeypatch, 7, 300)
    monkeypatch.setenv("NEARSIM_THREADS", "3")
    with Index.connect(database_url) as opened:
        yield opened


def test_threads_build_the_same_index(index: Index, database_url: str) -> None:
    build.build(index.database.engine, context_of(index), silent)
    assert_built_alike(database_url)
    second = leaves_of(database_url)[1].generation_id
    assert pairs_of(index.database, second) == jaccard_pairs(texts_of(index.database), 0.3)


def test_threads_do_all_slices_that_they_find(index: Index, database_url: str) -> None:
    context = context_of(index)
    with index.database.engine.connect() as connection:
        build_plan.plan_signing(connection, context)
        assert take_slices(index.database.engine, context, "sign", lambda: None) == 6
        assert context.tables(connection).slices.read_progress("sign").unfinished == 0
    build.build(index.database.engine, context, silent)
    assert_built_alike(database_url)


def test_the_error_of_a_thread_ends_the_build_which_can_be_resumed(
    index: Index, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, taken = Taker.take, list[str]()

    def fail_at_the_third(taker: Taker, stage: SlicedStage) -> bool:
        taken.append(stage)
        if len(taken) == 3:
            raise NearsimError("the third slice fails")
        return take(taker, stage)

    with monkeypatch.context() as patch:
        patch.setattr(Taker, "take", fail_at_the_third)
        with pytest.raises(NearsimError, match="the third slice fails"):
            build.build(index.database.engine, context_of(index), silent)
    build.build(index.database.engine, context_of(index), silent)
    assert_built_alike(database_url)


def test_an_interruption_ends_all_threads(index: Index, database_url: str) -> None:
    def interrupt(step: str, done: int, total: int | None) -> None:
        if step == "candidates" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build.build(index.database.engine, context_of(index), interrupt)
    build.build(index.database.engine, context_of(index), silent)
    assert_built_alike(database_url)


@pytest.mark.slow("a worker process")
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
