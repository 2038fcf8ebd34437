"""Texts looked up inside an application's transaction, and insertions that no near-duplicate overtakes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import conninfo, sql

from nearsim_db import Index
from nearsim_db.admin import attach
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from tests.builders.followed_table import words
from tests.builders.workers import Application, application, ask, running

CHECK = "SELECT external_id FROM nearsim.check_insert(%s, collection => 'story', deadline => '1 minute')"


@pytest.fixture
def url(database_url: str) -> Iterator[str]:
    """A database with an attached table, a worker, and the foreign server that reaches the database itself."""
    info = conninfo.conninfo_to_dict(database_url)
    options = {name: str(info[name]) for name in ("host", "port", "dbname")}
    with application(database_url) as app:
        app.execute(b"CREATE TABLE public.story (id bigint PRIMARY KEY, body text)")
        app.execute("CREATE EXTENSION dblink SCHEMA public")
        given = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.Literal(value))
            for name, value in options.items()
        )
        app.execute(
            sql.SQL("CREATE SERVER nearsim FOREIGN DATA WRAPPER dblink_fdw OPTIONS ({})").format(given)
        )
        mapping = sql.SQL("CREATE USER MAPPING FOR CURRENT_USER SERVER nearsim OPTIONS (user {})")
        app.execute(mapping.format(sql.Literal(info["user"])))
    with Database.connect(database_url) as database:
        attach.attach_table(database, "public.story", Columns("id", "body"))
        attach.ingest_table(Index(database, "story"), "default", Recipe())
        with running(database_url):
            yield database_url


def insert_if_new(app: Application, number: int, text: str) -> bool:
    """Insert a row in a transaction unless it has near-duplicates; return whether it was inserted."""
    with app.transaction():
        if app.execute(CHECK, (text,)).fetchall():
            return False
        app.execute("INSERT INTO public.story (id, body) VALUES (%s, %s)", (number, text))
    return True


@pytest.mark.slow("starts a worker")
def test_a_row_committed_just_before_is_found(url: str) -> None:
    with application(url) as app:
        assert insert_if_new(app, 1, words(0, 1))
        assert not insert_if_new(app, 2, words(0, 2))
        assert insert_if_new(app, 3, words(1, 3))
        assert app.execute(CHECK, (words(0, 4),)).fetchall() == [("1",)]


def test_of_concurrent_near_copies_one_is_inserted(url: str) -> None:
    def insert(number: int) -> bool:
        with application(url) as app:
            return insert_if_new(app, number, f"{words(number % 3, 0)} number{number}")

    with ThreadPoolExecutor(9) as pool:
        assert sum(pool.map(insert, range(9))) == 3
    with application(url) as app:
        assert ask(app, "SELECT count(DISTINCT id % 3) = 3 AND count(*) = 3 FROM public.story") is True


@pytest.mark.slow("starts a worker")
def test_the_document_that_is_replaced_is_left_out(url: str) -> None:
    with application(url) as app, app.transaction():
        app.execute("INSERT INTO public.story (id, body) VALUES (1, %s)", (words(0, 1),))
    with application(url) as app, app.transaction():
        assert app.execute(CHECK, (words(0, 2),)).fetchall() == [("1",)]
        kept = "SELECT count(*) FROM nearsim.check_text(%s, collection => 'story', external_id => '1')"
        assert app.execute(kept, (words(0, 2),)).fetchone() == (0,)


def test_without_a_request_or_a_server_the_error_names_both(database_url: str) -> None:
    with Database.connect(database_url) as database, application(database_url) as app:
        Index(database, "story").create_profile("default", Recipe())
        with pytest.raises(
            psycopg.errors.ObjectNotInPrerequisiteState, match="not asked for before"
        ) as raised:
            app.execute(CHECK, ("a text",))
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as of_check_text:
            app.execute("SELECT * FROM nearsim.check_text('a text', collection => 'story')")

    request = "Before the transaction SELECT nearsim.ask() with the same arguments"
    setup = "or create the extension dblink and the server nearsim: docs/how-to/check-from-sql.md."
    assert raised.value.diag.message_hint == f"{request} and purpose => 'insert', {setup}"
    assert of_check_text.value.diag.message_hint == f"{request}, {setup}"


@pytest.mark.slow("starts a worker")
def test_a_lost_connection_is_opened_again(url: str) -> None:
    with application(url) as app, application(url) as other:
        assert app.execute(CHECK, (words(0, 1),)).fetchall() == []
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT nearsim.ask(%%'"
        )
        with pytest.raises(psycopg.Error):
            app.execute(CHECK, (words(0, 1),))
        assert app.execute(CHECK, (words(0, 1),)).fetchall() == []


def test_an_older_snapshot_is_named_as_the_reason(url: str) -> None:
    with application(url) as app, app.transaction():
        app.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="snapshot") as raised:
            app.execute(CHECK, (words(0, 1),))
    assert raised.value.diag.message_hint == "Use isolation level READ COMMITTED."


def test_invalid_requests_are_those_of_ask(url: str) -> None:
    with application(url) as app, pytest.raises(psycopg.errors.NoDataFound, match="does not exist"):
        app.execute("SELECT * FROM nearsim.check_text('a text', collection => 'none')")


def test_without_an_answer_a_longer_deadline_is_advised(url: str) -> None:
    hurried = "SELECT * FROM nearsim.check_insert('a text', collection => 'story', deadline => '0 s')"
    with (
        application(url) as app,
        pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="no worker answered") as raised,
    ):
        app.execute(hurried)
    assert "raise the deadline" in (raised.value.diag.message_hint or "")
