"""nearsim ingest --from-sql: documents from a database that is only read."""

import json
from collections.abc import Iterator

import psycopg
import pytest

from tests.builders.command_line import HARVEST, STORM, STORM_AGAIN, CommandLine

TABLE = """
CREATE SCHEMA app;
CREATE TABLE app.story (
    key uuid, headline text, body text, day date, price numeric, weights real[], embedding text, data jsonb,
    span int4range);
CREATE SEQUENCE app.counter
"""
ROW = "INSERT INTO app.story VALUES (%s, %s, %s, %s, 1.10, %s, %s, %s, '[1,3)')"
KEYS = [f"00000000-0000-0000-0000-00000000000{digit}" for digit in range(3)]
STORIES = "SELECT *, body LIKE '%storm%' AS \"about storms\" FROM app.story ORDER BY key;"
FIELDS = ("--id-field", "key", "--title-field", "headline", "--published-field", "day")


@pytest.fixture
def app(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(TABLE)
        for key, text, day in zip(
            KEYS, (STORM, STORM_AGAIN, HARVEST), ("2024-05-31", "infinity", None), strict=True
        ):
            values = (key, "A title", text, day, [0.5, 1.0], "[1,2]", json.dumps({"a": [1]}))
            connection.execute(ROW, values)
        yield connection


def test_columns_become_documents(nearsim: CommandLine, app: psycopg.Connection, database_url: str) -> None:
    source = CommandLine({**nearsim.environment, "NEARSIM_SOURCE_URL": database_url})
    reported = source.succeed(
        "ingest", "--from-sql", STORIES, *FIELDS, "--vector-field", "weights", "--json"
    ).document()
    assert [reported[name] for name in ("inserted", "rejected", "unreadable_dates")] == [3, 0, 1]
    row, *_ = nearsim.succeed("export", "--keep", "all").rows()
    assert {name: row[name] for name in ("id", "title", "text", "published_at")} == {
        "id": KEYS[0],
        "title": "A title",
        "text": STORM,
        "published_at": "2024-05-31T00:00:00+00:00",
    }
    assert {name: row[name] for name in ("price", "embedding", "data", "span", "about storms")} == {
        "price": "1.10",
        "embedding": "[1,2]",
        "data": {"a": [1]},
        "span": "[1, 3)",
        "about storms": True,
    }
    vectors = [*FIELDS, "--vector-field", "embedding", "--from-url", database_url, "-c", "other"]
    shown = nearsim.succeed("ingest", "--from-sql", "TABLE app.story", *vectors)
    assert "line 2: 'day' 'infinity' is not a date or time in ISO 8601" in shown.err
    assert nearsim.succeed("export", "-c", "other", "--columns", "vector").rows() == [{"vector": [1, 2]}] * 2
    assert app.execute("SELECT count(*) FROM app.story").fetchone() == (3,)


def test_wrong_queries_are_refused(nearsim: CommandLine, app: psycopg.Connection, database_url: str) -> None:
    at = ("--from-url", database_url)
    for query, reason in (
        ("SELECT nextval('app.counter') AS id, body FROM app.story", "read-only transaction"),
        ("DELETE FROM app.story", "syntax error"),
        ("SELECT key, body FROM app.story", "--id-field"),
        ("SELECT key AS id, body, body FROM app.story", "duplicate column"),
        ("SELECT 1 / (2 - n) AS id, 'x' AS text FROM generate_series(1, 3) AS n", "division by zero"),
    ):
        assert reason in nearsim.fail("ingest", "--from-sql", query, *at)
    secret = "mysql://me:secret@host/db"
    assert "secret" not in nearsim.fail("ingest", "--from-sql", "SELECT 1", "--from-url", secret)
