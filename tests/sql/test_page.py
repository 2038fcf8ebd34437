"""docs/reference/sql.md agrees with the schema, and its queries run on the example stories."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from docs.generate import PAGE, QUERIES, render
from nearsim_db import Document, Index
from nearsim_db.store.driver import Connection, Engine

pytestmark = pytest.mark.each_major

STORIES = Path(__file__).parents[2] / "examples" / "stories.jsonl"
NAMES = sorted(path.stem for path in QUERIES.glob("*.sql"))
FIRST_LINES = {path.stem: path.read_text("utf-8").splitlines()[0] for path in QUERIES.glob("*.sql")}


def read_stories() -> list[Document]:
    """The stories of the demonstration."""
    return [
        Document(
            found["id"],
            found["title"],
            found["text"],
            source=found["source"],
            published_at=datetime.fromisoformat(found["published_at"]),
        )
        for found in map(json.loads, STORIES.read_text("utf-8").splitlines())
    ]


@pytest.fixture(scope="module")
def stories() -> list[Document]:
    return read_stories()


@pytest.fixture
def demo(engine: Engine, stories: list[Document]) -> Iterator[Connection]:
    """The demonstration's collection, with one document that waits."""
    url = engine.url
    with Index.connect(url, collection="demo") as index:
        index.add(stories)
    with engine.connect() as connection:
        connection.execute(
            "INSERT INTO nearsim.document (collection_id, external_id) "
            "SELECT collection_id, 'waiting' FROM nearsim.collection"
        )
        yield connection


def ask(connection: Connection, name: str) -> list[dict[str, Any]]:
    """The rows of a worked query."""
    cursor = connection.execute((QUERIES / f"{name}.sql").read_bytes())
    columns = [column.name for column in cursor.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in cursor]


def count(connection: Connection, name: str) -> int:
    """How many rows a table or view has."""
    command = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier("nearsim", name))
    ((counted,),) = connection.execute(command).fetchall()
    return int(str(counted))


def test_page_agrees_with_the_schema(connection: Connection) -> None:
    page = PAGE.read_text("utf-8")
    assert render(connection, page) == page, "run: make generated"


def test_page_has_every_comment_in_full(connection: Connection) -> None:
    page = PAGE.read_text("utf-8")
    comments = connection.execute(
        "SELECT description FROM pg_description LEFT JOIN pg_class ON pg_class.oid = objoid "
        "AND classoid = CAST('pg_class' AS regclass) "
        "LEFT JOIN pg_proc ON pg_proc.oid = objoid AND classoid = CAST('pg_proc' AS regclass) "
        "WHERE CAST('nearsim' AS regnamespace) IN (relnamespace, pronamespace)"
    )
    longest = {reported.replace("|", "\\|") for (reported,) in comments if len(reported) > 63}
    assert len(longest) > 50
    assert not [reported for reported in longest if reported not in page]


def test_every_query_has_a_title_and_runs(demo: Connection) -> None:
    assert all(line.startswith("-- ") for line in FIRST_LINES.values())
    answers = {name: ask(demo, name) for name in NAMES}
    assert all(answers.values()), [name for name, rows in answers.items() if not rows]
    (waiting,) = answers["not_indexed"]
    assert (waiting["state"], waiting["for_example"]) == ("waiting", ["waiting"])
    duplicates, documents = count(demo, "duplicates"), count(demo, "document")
    assert len(answers["keep_list"]) == documents - duplicates
    assert sum(row["duplicates"] for row in answers["duplicates_per_source_and_day"]) <= duplicates
    last = {row["cluster_id"]: row["documents"] for row in answers["cluster_growth"]}
    sizes = demo.execute("SELECT documents FROM nearsim.clusters ORDER BY 1 DESC LIMIT 5").fetchall()
    assert sorted(last.values(), reverse=True) == [size for (size,) in sizes]


def test_first_publication_is_never_later(demo: Connection) -> None:
    rows = ask(demo, "who_published_first")
    assert min(row["median_delay"].total_seconds() for row in rows) >= 0
    assert all(row["first_source"] != row["later_source"] for row in rows)


def test_pairs_of_a_document_equal_the_command_line(demo: Connection, database_url: str) -> None:
    with Index.connect(database_url, collection="demo") as index:
        similar = {match.external_id: match.similarity for match in index.similar("story-036")}
    assert {row["external_id"]: row["similarity"] for row in ask(demo, "pairs_of_a_document")} == similar


def test_pairs_are_among_the_candidates(demo: Connection) -> None:
    rows = ask(demo, "self_join")
    pairs = set(demo.execute("SELECT left_id, right_id, shared_bands FROM nearsim.similar_pair"))
    assert pairs and pairs <= {(row["left_id"], row["right_id"], row["shared_bands"]) for row in rows}
