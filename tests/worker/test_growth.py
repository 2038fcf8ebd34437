"""A live index in shared tables that grows large is moved to tables of its own by a worker."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import current_thread, main_thread
from typing import Any

import psycopg
import pytest

from nearsim_db import Database, Document, Index
from nearsim_db.errors import UnreachableError
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import FIRST_OWN
from nearsim_db.store.generations import generation_rows, partitions
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.worker import maintenance
from nearsim_db.worker.worker import Worker
from tests.builders.engine_hooks import in_transaction
from tests.builders.reindex_world import (
    LOWER,
    fill,
    jaccard_pairs,
    opened,
    pairs_of,
    states,
    stored,
    texts_of,
    words,
)
from tests.builders.selection import some
from tests.builders.workers import application
from tests.servers.databases import Server

FEW = 10
STEPS = 31  # statements and commits between two kills
CHANGES = (
    "UPDATE nearsim.document SET body = (SELECT body FROM nearsim.document WHERE external_id = 'd4') "
    "WHERE external_id = 'd0'",
    "DELETE FROM nearsim.document WHERE external_id = 'd8'",
    "UPDATE nearsim.document SET body = body || ' more' WHERE external_id IN ('d12', 'd13')",
)
CHANGING = 16  # of the documents; the pairs of the rest stay
UNCHANGED = {f"d{number}" for number in range(CHANGING, 40)}
KEPT = jaccard_pairs({name: words(int(name[1:])) for name in UNCHANGED}, 0.5)


class Killed(BaseException):
    """Ends a process in which all sessions were ended."""


@pytest.fixture
def url(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Forty documents, indexed in shared tables, which they have outgrown."""
    with server.database(fill) as url:
        monkeypatch.setattr(partitions, "MAX_SHARED_DOCUMENTS", FEW)
        yield url


@contextmanager
def before_every(monkeypatch: pytest.MonkeyPatch, number: int, action: Callable[[], None]) -> Iterator[None]:
    """Call an action before every n-th statement or commit of this thread, except its own."""
    execute, commit, steps, acting = psycopg.Cursor.execute, Connection.commit, 0, False

    def step() -> None:
        nonlocal steps, acting
        if acting or current_thread() is not main_thread():
            return
        steps += 1
        if steps % number == 0:
            acting = True
            try:
                action()
            finally:
                acting = False

    def executed(cursor: Any, *arguments: Any, **options: Any) -> Any:
        step()
        return execute(cursor, *arguments, **options)

    def committed(connection: Connection) -> None:
        if in_transaction(connection):
            step()
        commit(connection)

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", executed)
        patch.setattr(Connection, "commit", committed)
        yield


def end_sessions(url: str) -> None:
    """End all sessions of nearsim, as kill -9 of its processes would."""
    with application(url) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'nearsim'"
        )


def change(url: str) -> None:
    """Change documents as another application would."""
    with application(url) as other:
        for command in CHANGES:
            other.execute(command.encode())


def pairs(index: Index) -> set[tuple[str, str]]:
    """The pairs that the index answers with."""
    return {(min(one.left, one.right), max(one.left, one.right)) for one in index.pairs()}


def finish(url: str) -> None:
    """Do all work, and drop what it has replaced."""
    Worker(url).drain()


def assert_moved(url: str, threshold: float = 0.5) -> Generation:
    """The only generation is live, has tables of its own and the pairs of brute force; return it."""
    with Database.connect(url) as database:
        with database.transaction() as connection:
            (live,) = generation_rows.list_generations(connection)
        assert live.state == "live" and live.generation_id > FIRST_OWN
        assert stored(database) == {live.generation_id}
        assert pairs_of(database, live.generation_id) == jaccard_pairs(texts_of(database), threshold) != set()
    return live


@pytest.mark.slow("moves twice")
def test_a_grown_index_moves_to_its_own_tables(url: str) -> None:
    with opened(url) as (database, _), database.transaction() as connection:
        (small,) = generation_rows.list_generations(connection)
    assert small.leaves.are_shared
    finish(url)
    assert assert_moved(url).fingerprint == small.fingerprint
    with Index.connect(url) as index:
        index.add([Document("d40", body=words(39))])
    finish(url)
    assert_moved(url)


@pytest.mark.parametrize("every", some([40, 7], "more changes"))
def test_an_index_answers_and_follows_changes_while_it_moves(
    url: str, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents that do not change keep their pairs in every answer; changes at any step are in the new tables."""
    edition = 0
    with application(url) as other, Index.connect(url) as index:

        def write_and_read() -> None:
            nonlocal edition
            edition += 1
            number = edition % CHANGING
            if edition % 3:
                change = "UPDATE nearsim.document SET body = %s WHERE external_id = %s"
                other.execute(change, [words(number, edition), f"d{number}"])
            else:
                other.execute("DELETE FROM nearsim.document WHERE external_id = %s", [f"d{number}"])
            assert {pair for pair in pairs(index) if UNCHANGED.issuperset(pair)} == KEPT
            assert {one.external_id for one in index.similar_to_text(words(16))} == {"d16", "d17"}

        with before_every(monkeypatch, every, write_and_read):
            Worker(url).drain()
    finish(url)
    assert edition > 5
    assert_moved(url)


@pytest.mark.slow("many kills")
def test_a_move_killed_at_any_step_is_finished(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the next worker, with what was changed meanwhile."""
    for kills in count(1):
        with server.database(fill) as url, monkeypatch.context() as patch:
            patch.setattr(partitions, "MAX_SHARED_DOCUMENTS", FEW)

            def kill(url: str = url) -> None:
                end_sessions(url)
                raise Killed

            try:
                with before_every(monkeypatch, kills * STEPS, kill):
                    finish(url)
                break
            except (Killed, UnreachableError):
                change(url)
                with Index.connect(url) as index:
                    assert {pair for pair in pairs(index) if UNCHANGED.issuperset(pair)} == KEPT
                finish(url)
                assert_moved(url)
    assert kills > 10


@pytest.mark.slow("several builds")
@pytest.mark.parametrize("is_dropped", some([True, False], "each way"))
def test_a_move_gives_way_to_a_rollback(url: str, is_dropped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is live then is moved instead, also if the generation that began to move was dropped."""
    with opened(url) as (database, reindex):
        with monkeypatch.context() as patch:
            patch.setattr(partitions, "MAX_SHARED_DOCUMENTS", 100)
            reindex.start(settings=LOWER)
            reindex.promote()
        with monkeypatch.context() as patch:
            patch.setattr(maintenance, "finish_moves", lambda scope: None)
            Worker(url).drain()
        assert list(states(database).values()) == ["retired", "live", "ready"]
        reindex.rollback()
        if is_dropped:
            reindex.drop()
        finish(url)
        if not is_dropped:
            reindex.drop()
    assert_moved(url)
