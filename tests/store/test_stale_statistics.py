"""Statements on tables that were analyzed when they were empty, and filled again: rows looked at, not seconds."""

import json
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from nearsim_db.cli.app import app
from tests.builders.plan_log import Ran, logged

pytestmark = [pytest.mark.each_major, pytest.mark.slow("indexes thousands of documents several times")]

DOCUMENTS = 1_500
MOST_ROWS = 200_000  # 31,500 band rows are read at once; all documents times all documents are 2,250,000
TABLES = (
    "SELECT format('ANALYZE %I.%I', nspname, relname) FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace "
    "WHERE nspname IN ('nearsim', 'nearsim_index') AND relkind = 'r' AND relname <> 'work' AND relname <> 'change'"
)


def write(path: Path, edition: str) -> Path:
    """Documents in families of four: two alike, one twin, and one whose numbers differ."""
    with path.open("w") as file:
        for number in range(DOCUMENTS):
            family, member = divmod(number, 4)
            words = [f"{edition}{family}w{at}" for at in range(30)]
            words[3] = "7" if member == 2 else words[3]
            words[29] = f"x{number}" if member == 1 else words[29]
            file.write(
                json.dumps({"id": f"d{number}", "text": " ".join(words), "source": f"s{member}"}) + "\n"
            )
    return path


def analyze(url: str) -> None:
    """Statistics as autovacuum takes them, but for the queue, which nearsim vacuums itself."""
    with psycopg.connect(url, autocommit=True) as connection:
        for (command,) in connection.execute(TABLES).fetchall():
            connection.execute(command)


OVERESTIMATE = (
    "UPDATE pg_catalog.pg_class SET reltuples = reltuples * 100 FROM pg_catalog.pg_namespace AS n "
    "WHERE n.oid = relnamespace AND nspname IN ('nearsim', 'nearsim_index') AND relpages > 0"
)


class Commands:
    """Runs commands; collects statements that looked at too many rows."""

    def __init__(self, ran: list[Ran]) -> None:
        self._ran = ran
        self._runner = CliRunner()
        self.statements = 0
        self.slow: list[tuple[str, int, str]] = []

    def run(self, *arguments: str | Path) -> None:
        """Run `nearsim`."""
        ended = self._runner.invoke(app, list(map(str, arguments)), catch_exceptions=False)
        assert ended.exit_code == 0, ended.output
        self.statements += len(self._ran)
        self.slow += [
            (str(arguments[0]), one.rows, one.statement) for one in self._ran if one.rows > MOST_ROWS
        ]
        self._ran.clear()


def test_tables_that_counted_as_empty_are_not_read_once_for_each_row(
    database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NEARSIM_DATABASE_URL", database_url)
    first, second = write(tmp_path / "first.jsonl", "a"), write(tmp_path / "second.jsonl", "b")
    with logged(database_url, monkeypatch) as ran:
        commands = Commands(ran)
        commands.run("ingest", first, "-q")
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("DELETE FROM nearsim.document")
        commands.run("build", "-q")
        analyze(database_url)
        commands.run("dedupe", second, "-o", tmp_path / "u.jsonl", "-q", "--pairs", tmp_path / "p.jsonl")
        analyze(database_url)
        commands.run("ingest", first, "-q")  # in a generation that is live
        commands.run("ingest", second, "-q")
        for question in (["pairs"], ["clusters"], ["export"], ["events"], ["stats"], ["similar", "d1"]):
            commands.run(*question)
        commands.run("report", "-o", tmp_path / "report.html")
        commands.run("verify-index", "--all")
        commands.run("reindex", "start", "default", "--set", "match.threshold=0.6", "-q")
        commands.run("reindex", "diff")
        commands.run("document", "delete", *(f"d{number}" for number in range(DOCUMENTS // 2)), "--yes")
    assert commands.statements > 1_000
    assert commands.slow == []


def test_tables_that_count_as_a_hundred_times_larger_are_not_read_once_for_each_row(
    database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NEARSIM_DATABASE_URL", database_url)
    with logged(database_url, monkeypatch) as ran:
        commands = Commands(ran)
        commands.run("ingest", write(tmp_path / "first.jsonl", "a"), "-q")
        commands.run("reindex", "start", "default", "--set", "match.threshold=0.6", "-q")
        analyze(database_url)
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(OVERESTIMATE)
        for question in (["pairs"], ["clusters"], ["export"], ["events"], ["stats"], ["similar", "d1"]):
            commands.run(*question)
        commands.run("report", "-o", tmp_path / "report.html")
        commands.run("reindex", "diff")
    assert commands.statements > 100
    assert commands.slow == []


@pytest.mark.usefixtures("either_tables")
def test_generations_that_statistics_do_not_know_are_not_read_once_for_each_row(
    database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They share tables with another, whose rows are all that ANALYZE saw; those of their own, signed_document."""
    monkeypatch.setenv("NEARSIM_DATABASE_URL", database_url)
    with logged(database_url, monkeypatch) as ran:
        commands = Commands(ran)
        commands.run("ingest", write(tmp_path / "first.jsonl", "a"), "-q", "--collection", "first")
        analyze(database_url)
        commands.run("ingest", write(tmp_path / "second.jsonl", "b"), "-q", "--collection", "second")
        for question in (["pairs"], ["clusters"], ["export"], ["events"], ["stats"], ["similar", "d1"]):
            commands.run(*question, "--collection", "second")
        commands.run("report", "-o", tmp_path / "report.html", "--collection", "second")
        commands.run("verify-index", "--all", "--collection", "second")
        commands.run(
            "reindex", "start", "default", "--set", "match.threshold=0.6", "-q", "--collection", "second"
        )
        commands.run("reindex", "diff", "--collection", "second")
    assert commands.statements > 100
    assert commands.slow == []
