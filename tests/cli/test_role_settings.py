"""Settings of a database or a role change neither the outcome nor the output of a command."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import psycopg
import pytest

from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import run
from tests.builders.command_line import STORIES, STORM, STORM_LATER, CommandLine, write_jsonl
from tests.builders.selection import some
from tests.builders.session_settings import ALL, FORMATS, MEANING, PLANS, TRANSACTIONS, apply
from tests.servers.databases import Server

SEEN_BY_ALL = (
    "-c statement_timeout=0 -c lock_timeout=0 -c default_transaction_read_only=off -c search_path=public "
)
LATER = "later \N{GREEK SMALL LETTER OMEGA}"


def write_in_sql(url: str) -> None:
    """Insert a document as an application does, whose session has settings of its own."""
    with psycopg.connect(url, options=SEEN_BY_ALL, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET client_encoding = 'UTF8'")
        connection.execute(
            "SET transform_null_equals = off; SET standard_conforming_strings = on; RESET row_security"
        )
        connection.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body, published_at, attributes) "
            "SELECT collection_id, %s, %s, '2026-03-01T12:00:00+02', '{\"a\": 1.5}' FROM nearsim.collection",
            (LATER, STORM_LATER),
        )


class Transcript:
    """What commands print on a new database, times left out."""

    def __init__(self, url: str, folder: Path) -> None:
        self.printed: list[tuple[str, str]] = []
        self._url, self._folder = url, folder
        self._nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_HOME": str(folder / "home")})
        folder.mkdir()
        records = (
            {"id": id, "text": text, "published_at": "2026-03-01T12:00:00+02:00"}
            for id, text in STORIES.items()
        )
        self._stories = write_jsonl(folder / "stories.jsonl", records)

    def run(self, *words: object) -> None:
        """Run a command that succeeds."""
        outcome = self._nearsim.succeed(*words)
        self.printed.append((str(words[0]), without_times(outcome.out.replace(str(self._folder), ""))))

    def run_commands(self) -> None:
        """From ingesting to another index, queries, and verdicts."""
        self.run("ingest", self._stories, "--json")
        write_in_sql(self._url)
        self.run("worker", "--once", "--quiet")
        self.run("pairs", "--format", "jsonl")
        self.run("similar", "storm", "--format", "jsonl")
        self.run("similar", "--text", STORM, "--format", "jsonl")
        self.run("document", "get", LATER)
        self.run("reindex", "start", "--set", "match.threshold=0.6", "--json")
        self.run("reindex", "diff", "--json")
        self.run("reindex", "promote")
        self.run("verify-index", "--all", "--json")
        self.run("report", "--json")
        for query in (("clusters",), ("check", self._stories), ("events",), ("work", "list")):
            self.run(*query, "--format", "csv")
        self.run("verdict", "pin", "harvest", "bridge", "--why", "of the valley", "--by", "anna", "--json")
        self.run("document", "purge", "storm-twin", "--yes", "--json")


_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?(Z|\+00:00)?)?")
_VARYING = re.compile(r'("(seconds|bytes|[a-z_]*(bytes|seconds))": *|in )\d+(\.\d+)?')


def without_times(printed: str) -> str:
    """The output with times and sizes left out; a time in another format or zone stays."""
    return _VARYING.sub("", _TIME.sub("<time>", printed))


@pytest.mark.slow("many commands")
@pytest.mark.parametrize(
    "settings",
    some([ALL, FORMATS, MEANING, TRANSACTIONS, PLANS], "runs forty commands"),
    ids=["all", "formats", "meaning", "transactions", "plans"],
)
def test_commands_print_the_same(server: Server, tmp_path: Path, settings: Mapping[str, str]) -> None:
    with server.database() as plain, server.database() as hostile:
        apply(hostile, settings)
        expected, found = Transcript(plain, tmp_path / "plain"), Transcript(hostile, tmp_path / "hostile")
        for one in (expected, found):
            one.run_commands()
    assert found.printed == expected.printed
    got = json.loads(next(printed for command, printed in found.printed if command == "document"))
    assert got["body"] == STORM_LATER and got["attributes"] == {"a": 1.5}


@pytest.mark.each_major
def test_where_a_role_has_a_transaction_timeout_nothing_runs_in_parallel(database_url: str) -> None:
    """Parallel workers start with that of the role, and take that of the session later."""
    # Adds a Gather to every plan that may have one; the first name is that of PostgreSQL 15.
    forced = {"force_parallel_mode": "on", "debug_parallel_query": "on"}
    apply(database_url, {**forced, "transaction_timeout": "1min"})
    engine = open_engine(database_url)
    with engine.connect() as connection:
        plan = connection.execute("EXPLAIN SELECT count(*) FROM pg_catalog.pg_class").fetchall()
        is_known = run(connection, "SELECT current_setting('transaction_timeout', true)").value() is not None
    engine.dispose()
    assert ("Gather" in str(plan)) == (not is_known)


@pytest.mark.each_major
def test_sessions_set_the_settings_they_depend_on(database_url: str) -> None:
    apply(database_url, ALL)
    engine = open_engine(database_url)
    with engine.connect() as connection:
        shown = {
            name: run(connection, "SELECT current_setting(%(name)s, true)", name=name).value() for name in ALL
        }
    engine.dispose()
    assert shown["DateStyle"] == "ISO, YMD" and shown["TimeZone"] == "UTC"
    assert shown["search_path"] in ("pg_catalog, pg_temp", '"pg_catalog", "pg_temp"')
    timeouts = [value for name, value in shown.items() if name.endswith("_timeout") and value is not None]
    assert timeouts and set(timeouts) == {"0"}
    own = {name for name in shown if shown[name] == ALL[name]}
    # Of these no outcome depends.
    left = {
        *(
            "lc_monetary",
            "lc_numeric",
            "lc_time",
            "xmlbinary",
            "xmloption",
            "escape_string_warning",
            "work_mem",
        ),
        *("backslash_quote", "plpgsql.extra_warnings", "client_min_messages", "check_function_bodies"),
        *("synchronous_commit", "enable_memoize", "jit_above_cost", "geqo_threshold", "parallel_setup_cost"),
        "min_parallel_table_scan_size",
    }
    # Without parallel workers where a transaction_timeout could end them
    without_timeout = {"max_parallel_workers_per_gather"} if shown["transaction_timeout"] is None else set()
    assert own == left | without_timeout
