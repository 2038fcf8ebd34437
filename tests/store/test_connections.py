"""Engines and connections: which sessions are reused, and what is left of their transactions."""

from collections.abc import Iterator

import psycopg
import pytest

from nearsim_db.errors import NearsimError
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.connection import autocommitting
from nearsim_db.store.driver.engine import open_engine, parse_url
from nearsim_db.store.driver.statements import run

PID = "SELECT pg_backend_pid()"
IN_TRANSACTION = "SELECT txid_current_if_assigned() IS NOT NULL"


def session_of(engine: Engine) -> int:
    """The server's process of the session that the engine would give out."""
    with engine.connect() as connection:
        return int(run(connection, PID).value())


@pytest.fixture
def table(engine: Engine) -> str:
    """A table for rows of this test."""
    with engine.begin() as connection:
        connection.execute("CREATE TABLE public.kept (number int)")
    return "public.kept"


@pytest.fixture
def numbers(database_url: str) -> Iterator[Connection]:
    """A connection of an engine of its own, to see what was committed."""
    watching = open_engine(database_url)
    with watching.connect(autocommit=True) as connection:
        yield connection
    watching.dispose()


def test_at_most_five_idle_sessions_are_kept(engine: Engine) -> None:
    connections = [engine.connect() for _ in range(8)]
    pids = [run(connection, PID).value() for connection in connections]
    for connection in connections:
        connection.close()
    again = [engine.connect() for _ in range(5)]
    assert {run(connection, PID).value() for connection in again} == set(pids[:5])
    for connection in again:
        connection.close()


@pytest.mark.each_major
@pytest.mark.parametrize("ended", [1, 2])
def test_sessions_that_the_server_ended_are_replaced(engine: Engine, ended: int) -> None:
    with engine.connect() as killer:
        with engine.connect() as first, engine.connect() as second:
            pids = [run(first, PID).value(), run(second, PID).value()]
        parameters = {"pids": pids[-ended:]}
        query = (
            "SELECT bool_and(pg_terminate_backend(CAST(pid AS integer), 10000)) FROM unnest(%(pids)s) AS pid"
        )
        assert run(killer, query, **parameters).value()
    with engine.connect() as one, engine.connect() as other:
        found = {run(one, PID).value(), run(other, PID).value()}
    assert not found & set(pids[-ended:])


def test_sessions_idle_for_long_are_asked(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    before = session_of(engine)
    monkeypatch.setattr("nearsim_db.store.driver.engine._TRUSTED_SECONDS", -1.0)
    assert session_of(engine) == before
    with engine.connect() as connection:
        assert not connection.backend.autocommit


def test_a_block_commits_unless_an_error_leaves_it(engine: Engine, table: str, numbers: Connection) -> None:
    with engine.begin() as connection:
        connection.execute("INSERT INTO public.kept VALUES (1)")
    with pytest.raises(ZeroDivisionError), engine.begin() as connection:
        connection.execute("INSERT INTO public.kept VALUES (2)")
        raise ZeroDivisionError
    with engine.connect() as connection:
        connection.execute("INSERT INTO public.kept VALUES (3)")
    assert numbers.execute("SELECT number FROM public.kept").fetchall() == [(1,)]


def test_a_failed_statement_leaves_nothing_in_its_session(engine: Engine) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable), engine.connect() as connection:
        connection.execute("SELECT FROM public.missing")
    with engine.connect() as connection:
        assert run(connection, "SELECT 1").value() == 1


def test_prepared_statements_outlive_transactions_but_not_failures(engine: Engine, table: str) -> None:
    prepared = b"SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%kept%'"

    def read_all() -> list[tuple[object, ...]]:
        with engine.connect() as connection:
            return run(connection, b"SELECT * FROM public.kept", None, "prepared").rows()

    def count() -> int:
        with engine.connect() as connection:
            return int(run(connection, prepared).value())

    read_all()
    assert count() == 1
    with engine.begin() as connection:
        connection.execute("ALTER TABLE public.kept ALTER number TYPE text")
    assert count() == 0
    read_all()
    with psycopg.connect(engine.url, autocommit=True) as other:
        other.execute("ALTER TABLE public.kept ALTER number TYPE bigint USING 1")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="result type"):
        read_all()
    assert read_all() == []


def test_options_of_a_connection_end_with_it(engine: Engine, table: str) -> None:
    with engine.connect(autocommit=True) as connection:
        autocommitting(connection).execute("VACUUM public.kept")
    with engine.snapshot() as connection:
        assert run(connection, "SHOW transaction_isolation").value() == "repeatable read"
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("INSERT INTO public.kept VALUES (1)")
    with engine.snapshot(read_only=False) as connection:
        connection.execute("INSERT INTO public.kept VALUES (1)")
    with engine.connect() as connection:
        assert run(connection, "SHOW transaction_isolation").value() == "read committed"
        connection.execute("INSERT INTO public.kept VALUES (1)")
        assert run(connection, IN_TRANSACTION).value()


def test_savepoints(engine: Engine, table: str) -> None:
    with engine.connect() as connection:
        with connection.begin_nested():
            connection.execute("INSERT INTO public.kept VALUES (1)")
        with pytest.raises(psycopg.errors.DivisionByZero), connection.begin_nested():
            connection.execute("INSERT INTO public.kept VALUES (2)")
            connection.execute("SELECT 1 / 0")
        outer = connection.begin_nested()
        connection.execute("INSERT INTO public.kept VALUES (3)")
        connection.begin_nested().commit()
        outer.rollback()
        assert connection.execute("SELECT number FROM public.kept").fetchall() == [(1,)]


def test_invalidated_sessions_and_those_left_in_a_copy_are_not_kept(engine: Engine) -> None:
    with engine.connect() as connection:
        before = run(connection, PID).value()
        connection.backend.pgconn.exec_(b"COPY (SELECT generate_series(1, 100000)) TO STDOUT")
    with engine.connect() as connection:
        later = run(connection, PID).value()
        connection.invalidate()
    assert len({before, later, session_of(engine)}) == 3


def test_sessions_in_use_are_closed_after_the_engine(engine: Engine) -> None:
    connection = engine.connect()
    backend = connection.backend
    engine.dispose()
    assert run(connection, "SELECT 1").value() == 1
    connection.close()
    assert backend.closed
    with pytest.raises(psycopg.InterfaceError, match="returned"):
        connection.execute("SELECT 1")


SERVER = {"user": "me", "host": "host", "dbname": "mine"}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://me@host/mine", SERVER),
        ("postgres://me@host/mine", SERVER),
        ("postgresql+psycopg://me:s%2Fe%40c@host:5433/mine", SERVER | {"password": "s/e@c", "port": "5433"}),
        ("postgresql://me:a/b?c#d%25@host/mine", SERVER | {"password": "a/b?c#d%"}),
        ("postgresql://me@[::1]:5432/mine", SERVER | {"host": "::1", "port": "5432"}),
        ("postgresql:///mine?host=%2Frun%2Fpg&port=6", {"dbname": "mine", "host": "/run/pg", "port": "6"}),
        ("postgresql://host/a%20b?options=-c%20role%3Dx", {"host": "host", "dbname": "a b", "options": "-c role=x"}),
        ("postgresql://me@/mine?host=host&application_name=a@b", SERVER | {"application_name": "a@b"}),
        ("postgresql://me@/mine?host=a:1&host=b:2", SERVER | {"host": "a,b", "port": "1,2"}),
        ("postgresql://me@/mine?host=a&host=b", SERVER | {"host": "a,b"}),
        ("postgresql://", {}),
    ],
)  # fmt: skip
def test_parameters_of_a_url(url: str, expected: dict[str, str]) -> None:
    assert parse_url(url) == expected


@pytest.mark.parametrize(
    "url", ["", "host=h dbname=d", "postgresql:/h/d", "postgresql://h:secret/d", "://h", "mysql://h/d"]
)
def test_other_urls_are_refused_without_showing_a_password(url: str) -> None:
    with pytest.raises(NearsimError) as refused:
        open_engine(url)
    assert "secret" not in str(refused.value)


@pytest.mark.each_major
def test_whether_the_user_is_a_superuser_follows_its_role(connection: Connection) -> None:
    seen = [connection.is_superuser]
    for command, end in (
        ("SET LOCAL ROLE nearsim_reader", connection.commit),
        ("SET ROLE nearsim_reader", connection.rollback),
    ):
        connection.execute(command)
        seen.append(connection.is_superuser)
        end()
        seen.append(connection.is_superuser)
    assert seen == [True, False, True, False, True]


def test_the_name_of_a_collection_is_no_address() -> None:
    with pytest.raises(
        NearsimError, match=r"'ads' is not a database URL .* collection is named by collection="
    ):
        parse_url("ads")


def test_an_invalid_address_is_not_quoted() -> None:
    with pytest.raises(NearsimError) as refused:
        parse_url("user:secret@server")
    assert "secret" not in str(refused.value)
