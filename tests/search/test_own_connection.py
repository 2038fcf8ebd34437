"""Index.connect(connection=...): documents and their checks in a transaction of the application."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.orm import Session

from nearsim_db import AsyncIndex, Document, Index, Recipe
from nearsim_db.errors import ConflictError, DatabaseError, DuplicateError, InputError, NotFoundError
from tests.builders.command_line import STORIES, STORM
from tests.builders.followed_table import words
from tests.builders.selection import some

DOCUMENTS = [Document(name, None, text) for name, text in STORIES.items()]
COPY = Document("copy", None, STORM)


class Wrapper:
    """What `django.db.connection` is: a connection made on demand, and psycopg's below it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.connection: psycopg.Connection[Any] | None = None

    def ensure_connection(self) -> None:
        """Connect if that was not done."""
        self.connection = self.connection or psycopg.connect(self._url)


@contextmanager
def with_psycopg(url: str) -> Iterator[tuple[Any, Callable[[], None]]]:
    # Rows and names as an application may have them; its statements are prepared at once.
    with psycopg.connect(url, row_factory=dict_row, cursor_factory=psycopg.ClientCursor) as own:
        own.execute("SET search_path = public; SET TimeZone = 'Asia/Seoul'")
        own.commit()
        own.prepare_threshold = 0
        yield own, own.commit


@contextmanager
def with_autocommit(url: str) -> Iterator[tuple[Any, Callable[[], None]]]:
    with psycopg.connect(url, autocommit=True) as own:
        own.execute("BEGIN")

        def commit() -> None:
            own.execute("COMMIT; BEGIN")

        yield own, commit


@contextmanager
def with_sqlalchemy(url: str) -> Iterator[tuple[Any, Callable[[], None]]]:
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as own:
        yield own, own.commit
    engine.dispose()


@contextmanager
def with_session(url: str) -> Iterator[tuple[Any, Callable[[], None]]]:
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as own:
        yield own, own.commit
    engine.dispose()


@contextmanager
def with_django(url: str) -> Iterator[tuple[Any, Callable[[], None]]]:
    own = Wrapper(url)
    own.ensure_connection()
    assert own.connection is not None
    with own.connection:
        yield own, own.connection.commit


Opened = Callable[[str], AbstractContextManager[tuple[Any, Callable[[], None]]]]


@pytest.mark.parametrize(
    "opened",
    some(
        [with_psycopg, with_django, with_autocommit, with_sqlalchemy, with_session], "every library", kept=2
    ),
)
def test_a_document_and_its_check_commit_together(database_url: str, opened: Opened) -> None:
    with Index.connect(database_url) as other:
        other.add(DOCUMENTS)
        before = list(other.pairs()), other.stats()
        with opened(database_url) as (own, commit), Index.connect(connection=own) as index:
            assert list(index.pairs()) == before[0]
            assert len(index.check(COPY)) == 3
            assert index.add([COPY], on_duplicate="skip").skipped == 1
            with pytest.raises(DuplicateError):
                index.add([COPY], on_duplicate="raise")
            assert index.add([COPY], on_duplicate="flag").inserted == 1
            assert len(index.check(Document("another", None, STORM))) == 4
            index.add([Document("plain", None, words(0, 0))])
            index.delete(["storm"])
            index.veto("storm-again", "storm-twin", "not the same")
            assert (list(other.pairs()), other.stats()) == before
            commit()
            other.build()
            assert not other.warnings and not index.warnings
            assert {one.external_id for one in other.similar("copy")} == {"storm-again", "storm-twin"}
            assert other.get("plain")["body"] == words(0, 0)
            assert len(list(other.verdicts())) == 1


def test_a_rollback_leaves_nothing(database_url: str) -> None:
    with Index.connect(database_url) as other, psycopg.connect(database_url) as own:
        other.add(DOCUMENTS)
        with Index.connect(connection=own) as index:
            index.add([COPY], on_duplicate="flag")
            own.rollback()
            with pytest.raises(NotFoundError):
                index.get("copy")
            assert len(index.check(COPY)) == 3
        assert own.execute("SELECT 1").fetchone() == (1,)


def test_streams_of_one_kind_are_read_side_by_side(database_url: str) -> None:
    with Index.connect(database_url) as other, psycopg.connect(database_url) as own:
        other.add(DOCUMENTS)
        with Index.connect(connection=own) as index:
            both = list(zip(index.pairs(), index.pairs(), strict=True))
            assert both and all(left == right for left, right in both)


def test_of_concurrent_near_copies_one_is_inserted(database_url: str) -> None:
    with Index.connect(database_url) as other:
        other.add(DOCUMENTS[:1])

    def add(number: int) -> int:
        with psycopg.connect(database_url) as own, Index.connect(connection=own) as index:
            text = f"{words(number % 3, 0)} number{number}"
            return index.add([Document(str(number), None, text)], on_duplicate="skip").inserted

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(add, range(9))) == 3


def test_a_collection_that_was_created_empty_is_guarded(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_collection()
    with psycopg.connect(database_url) as own, Index.connect(connection=own) as index:
        assert index.add([COPY], on_duplicate="skip").inserted == 1
        assert index.add([COPY], on_duplicate="skip").unchanged == 1
        assert index.add([Document("another", body=COPY.body)], on_duplicate="skip").skipped == 1


def test_what_an_open_transaction_cannot_do_is_refused(database_url: str) -> None:
    with psycopg.connect(database_url) as own, Index.connect(connection=own) as index:
        with pytest.raises(ConflictError, match=r"does not exist.*create_collection\(\)"):
            index.add([COPY], on_duplicate="skip")
        index.add([COPY])
        own.commit()
        for refused in (
            index.build,
            index.sweep,
            lambda: index.purge(["copy"]),
            index.create_collection,
            lambda: index.create_profile("other", Recipe()),
            lambda: index.delete_profile("default"),
            lambda: index.events(follow=True),
            lambda: index.ingest([], dry_run=True),
        ):
            with pytest.raises(ConflictError, match="transactions of its own"):
                refused()
        own.rollback()
        own.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with pytest.raises(ConflictError, match="is repeatable read"):
            index.add([COPY], on_duplicate="skip")
        own.rollback()
        own.autocommit = True
        with pytest.raises(ConflictError, match="autocommit"):
            index.add([COPY])
        assert own.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with own.transaction():
            assert index.add([COPY]).unchanged == 1
    with pytest.raises(InputError, match=r"sqlite3.Connection; pass a connection of psycopg 3"):
        Index.connect(connection=__import__("sqlite3").connect(":memory:"))
    with pytest.raises(DatabaseError, match="closed"):
        Index.connect(connection=own)


def test_an_engine_opens_sessions_that_the_index_owns(database_url: str) -> None:
    engine = sqlalchemy.create_engine(
        database_url.replace("postgresql://", "postgresql+psycopg://"), pool_size=1
    )
    opened: list[object] = []

    @sqlalchemy.event.listens_for(engine, "do_connect")
    def _(*given: object) -> None:
        opened.append(given)

    with Index.connect(connection=engine) as index:
        index.add(DOCUMENTS)
        assert len(list(index.pairs())) == 3
        assert opened
    with engine.connect() as own:
        assert own.exec_driver_sql("SHOW search_path").scalar() != "pg_catalog, pg_temp"
    engine.dispose()


def test_coroutines_use_it_in_a_thread(database_url: str) -> None:
    async def work() -> None:
        with psycopg.connect(database_url) as own:
            async with await AsyncIndex.connect(connection=own) as index:
                assert (await index.add(DOCUMENTS)).inserted == 5
                assert (await index.get("storm"))["body"] == STORM
            own.rollback()
        async with await psycopg.AsyncConnection.connect(database_url) as wrong:
            with pytest.raises(InputError, match="not one for asyncio"):
                await AsyncIndex.connect(connection=wrong)  # type: ignore[arg-type]

    asyncio.run(asyncio.wait_for(work(), 60))
