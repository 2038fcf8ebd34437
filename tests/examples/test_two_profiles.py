"""Queries and examples that name a collection and a profile give the same rows beside a second profile."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from docs.generate import QUERIES
from tests.builders.command_line import CommandLine
from tests.examples.conftest import EXAMPLES
from tests.examples.test_queries import DBT, EMPTY, SQL_TARGETS, ask, dbt_renderer, grafana, run_session
from tests.servers.databases import Server

# It combines profiles.
COMBINING = {"same_headline_or_same_body"}
MODELS = ("copies", "copies_by_source_and_day", "distinct_documents")


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    def fill(url: str) -> None:
        nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_BACKEND": "numpy"})
        nearsim.succeed("ingest", EXAMPLES / "stories.jsonl", "--collection", "demo", "--quiet")

    with server.database(fill) as url:
        yield url


def answers(url: str) -> dict[str, list[str]]:
    """The rows of all queries, by their names, and what the psql session prints."""
    texts = {f"docs {path.stem}": path.read_text("utf-8") for path in QUERIES.glob("*.sql")}
    texts |= {f"grafana {title}": grafana(text) for title, text in SQL_TARGETS.items() if title not in EMPTY}
    render = dbt_renderer()
    with psycopg.connect(url) as connection:
        for name in MODELS:
            text = render((DBT / "models" / f"{name}.sql").read_text("utf-8"))
            connection.execute(f"CREATE TEMPORARY VIEW {name} AS {text}".encode())
            texts[f"dbt {name}"] = f"SELECT * FROM {name}"  # noqa: S608
        found = {
            name: sorted(map(str, ask(connection, text)))
            for name, text in texts.items()
            if name.partition(" ")[2] not in COMBINING
        }
    return found | {"psql session": [run_session(url).stdout]}


@pytest.mark.slow("runs all queries twice")
def test_a_second_profile_changes_no_answer(url: str) -> None:
    before = answers(url)
    assert len(before) > 15 and {name for name, rows in before.items() if not rows} == {"docs not_indexed"}
    nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_BACKEND": "numpy"})
    nearsim.succeed("profile", "create", "other", "--preset", "headlines", "--collection", "demo", "--quiet")
    nearsim.succeed("build", "--collection", "demo", "--quiet")
    with psycopg.connect(url) as connection:
        live: Any = connection.execute("SELECT count(*) FROM nearsim.live_generations").fetchone()
    assert live == (2,)
    assert answers(url) == before
