"""The queries of the examples run on the real schema, and give the same rows beside a second profile."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
import yaml
from jinja2 import Environment, StrictUndefined
from prometheus_client.parser import text_string_to_metric_families
from psycopg import sql

from docs.generate import QUERIES
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.embedded.binaries import installed_binaries
from nearsim_db.store.work import backlog
from nearsim_db.worker.metrics import Monitor
from tests.builders.command_line import CommandLine
from tests.examples.conftest import EXAMPLES
from tests.servers.databases import Server

DBT = EXAMPLES / "dbt"
SESSION = EXAMPLES / "psql" / "session.sql"
DASHBOARD = json.loads((EXAMPLES / "grafana" / "nearsim.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]
SQL_TARGETS = {title: target["rawSql"] for title, target in TARGETS if "rawSql" in target}
PROMETHEUS = [target["expr"] for _, target in TARGETS if "expr" in target]
EMPTY = {"Queue"}  # no worker has anything to do


@pytest.fixture
def connection(demo_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection whose changes are rolled back."""
    with psycopg.connect(demo_url) as connection:
        yield connection
        connection.rollback()


def grafana(text: str, collection: str = "demo", profile: str = "default", since: str = "1990-01-01Z") -> str:
    """A query as Grafana sends it: `:sqlstring` quotes a variable, and the time picker gives the range."""
    for name, value in (("collection", collection), ("profile", profile)):
        quoted = value.replace("'", "''")
        text = text.replace(f"${{{name}:sqlstring}}", f"'{quoted}'")
    text = re.sub(r"\$__timeFilter\(([\w.]+)\)", rf"\1 BETWEEN '{since}' AND '2100-01-01Z'", text)
    assert "$" not in text
    return text


def ask(connection: psycopg.Connection[Any], text: str) -> list[dict[str, Any]]:
    """The rows of a query."""
    cursor = connection.execute(text.encode())
    names = [column.name for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def run_session(url: str) -> subprocess.CompletedProcess[str]:
    """Run the psql session."""
    return subprocess.run(
        [installed_binaries().program("psql"), url, "--no-psqlrc", "--file", str(SESSION)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_statement_of_the_psql_session_returns_rows(demo_url: str) -> None:
    ended = run_session(demo_url)
    assert (ended.returncode, ended.stderr) == (0, "")
    counts = [int(found) for found in re.findall(r"^\((\d+) rows?\)$", ended.stdout, re.MULTILINE)]
    statements = SESSION.read_text("utf-8").count("\nSELECT ")
    assert len(counts) == statements - 1, "one result goes to variables"
    assert all(counts), ended.stdout
    assert "story-036 and story-038: the evidence" in ended.stdout


def dbt_renderer() -> Callable[[str], str]:
    """Render a model as dbt does: sources and models by name, variables as declared."""
    project = yaml.safe_load((DBT / "dbt_project.yml").read_text("utf-8"))
    (declared,) = yaml.safe_load((DBT / "models" / "sources.yml").read_text("utf-8"))["sources"]
    tables = {table["name"] for table in declared["tables"]}
    models = {path.stem for path in (DBT / "models").glob("*.sql")}

    def source(name: str, table: str) -> str:
        assert name == declared["name"] and table in tables
        return f"{declared['schema']}.{table}"

    def ref(model: str) -> str:
        assert model in models
        return model

    names = {"source": source, "ref": ref, "var": project["vars"].__getitem__}
    return lambda text: Environment(undefined=StrictUndefined).from_string(text).render(names)


def test_dbt_models_divide_the_documents_into_kept_and_dropped(connection: psycopg.Connection[Any]) -> None:
    render = dbt_renderer()
    described = yaml.safe_load((DBT / "models" / "models.yml").read_text("utf-8"))["models"]
    for model in described:  # in an order in which each refers to earlier ones
        text = render((DBT / "models" / f"{model['name']}.sql").read_text("utf-8"))
        command = sql.SQL("CREATE TEMPORARY VIEW {} AS ").format(sql.Identifier(model["name"]))
        connection.execute(command.as_bytes(connection) + text.encode())
        query = sql.SQL("SELECT * FROM {} LIMIT 1").format(sql.Identifier(model["name"]))
        (columns,) = ask(connection, query.as_string(connection))
        assert {column["name"] for column in model["columns"]} <= set(columns)
    for path in (DBT / "tests").glob("*.sql"):
        assert ask(connection, render(path.read_text("utf-8"))) == []
    (counted,) = ask(
        connection, "SELECT sum(documents) AS documents, sum(copies) AS copies FROM copies_by_source_and_day"
    )
    (kept,) = ask(connection, "SELECT count(*) AS documents FROM distinct_documents")
    assert counted["documents"] == 113 and kept["documents"] == 113 - counted["copies"]


@pytest.mark.parametrize("title", SQL_TARGETS)
def test_dashboard_panel_shows_rows(connection: psycopg.Connection[Any], title: str) -> None:
    rows = ask(connection, grafana(SQL_TARGETS[title]))
    assert bool(rows) is (title not in EMPTY)
    if title in EMPTY:
        return
    quoting = grafana(SQL_TARGETS[title], "x') OR ('' = '", "o'profile")
    later = grafana(SQL_TARGETS[title], since="2099-12-31Z")
    for text in [quoting] if title == "Live index" else [quoting, later]:
        assert not any(value for row in ask(connection, text) for value in row.values())


def test_dashboard_variables_offer_the_collection_and_its_profile(
    connection: psycopg.Connection[Any],
) -> None:
    found = {
        variable["name"]: ask(connection, grafana(variable["query"]))
        for variable in DASHBOARD["templating"]["list"]
    }
    assert found == {"collection": [{"collection": "demo"}], "profile": [{"profile": "default"}]}


def test_dashboard_uses_metrics_that_a_worker_exposes(demo_url: str) -> None:
    monitor, engine = Monitor(), open_engine(demo_url)
    with engine.connect() as connection:
        monitor.session_began(lambda: backlog.read_backlog(connection, None))
        exposed = {
            sample
            for family in text_string_to_metric_families(monitor.exposition().decode())
            for sample in (family.name, f"{family.name}_total")
        }
    engine.dispose()
    used = {name for expression in PROMETHEUS for name in re.findall(r"nearsim_\w+", expression)}
    assert used and used <= exposed


def test_dashboard_panels_do_not_overlap() -> None:
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24


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
