"""Fixtures: an application with a table, and a collection that is attached to the table."""

from collections.abc import Iterator

import psycopg
import pytest

from nearsim_db import Index
from nearsim_db.store.database import Database
from tests.builders.followed_table import PLAIN, attached, words, write
from tests.builders.workers import Application, application


@pytest.fixture
def where(database_url: str) -> str:
    """A database whose search_path is public, whatever the name of the user."""
    with application(database_url) as connection:
        name = psycopg.sql.Identifier(connection.info.dbname)
        connection.execute(psycopg.sql.SQL("ALTER DATABASE {} SET search_path = public").format(name))
    return database_url


@pytest.fixture
def app(where: str) -> Iterator[Application]:
    """The application's connection, and its table with ten texts of two families."""
    with application(where) as connection:
        connection.execute(PLAIN.encode())
        for number in range(1, 11):
            write(connection, number, words(number % 2, number))
        yield connection


@pytest.fixture
def database(where: str) -> Iterator[Database]:
    """The same database, opened by nearsim."""
    with Database.connect(where) as database:
        yield database


@pytest.fixture
def story(app: Application, database: Database) -> Index:
    """An indexed collection that is attached to the table."""
    return attached(database)
