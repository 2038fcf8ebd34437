"""Commands on a standby: those that only read work, those that write say why they cannot."""

from pathlib import Path

import psycopg
import pytest

from tests.builders.command_line import STORM, STORM_AGAIN, CommandLine, write_jsonl
from tests.servers.standby import primary_and_standby

READING = [
    *(
        "pairs --format jsonl",
        "clusters --format jsonl",
        "similar a",
        "check two.jsonl",
        "why a b",
        "document get a",
    ),
    *("similar --text words", "stats", "export --format jsonl", "report --output report.html", "events"),
    *(
        "export --output kept.csv",
        "tune --collection default",
        "verify-index",
        "profile list",
        "server status",
    ),
    *(
        "profile show default",
        "reindex status",
        "collection list",
        "verdict list",
        "work list",
        "schema init",
    ),
    *("table list", "why-not a b"),
]
WRITING = [
    *(
        "ingest two.jsonl",
        "ingest two.jsonl --dry-run",
        "build",
        "worker --once",
        "document delete a",
        "reindex diff",
    ),
    "document purge a --yes",
    *(
        "profile create new",
        "collection create new",
        "verdict veto a b --why different",
        "access isolation on",
    ),
    *("reindex start --set match.threshold=0.4", "reindex promote"),
]


@pytest.mark.slow("starts two servers")
def test_a_standby_answers_and_takes_no_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, major: int
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("two.jsonl"), [{"id": "a", "text": STORM}, {"id": "b", "text": STORM_AGAIN}])

    def fill(url: str) -> None:
        primary = CommandLine({"NEARSIM_DATABASE_URL": url})
        primary.succeed("ingest", "two.jsonl")
        primary.succeed("reindex", "start", "--set", "match.threshold=0.5")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")  # a standby has no counts of rows that were written since

    with primary_and_standby(major, fill) as (primary, standby):
        expected = CommandLine({"NEARSIM_DATABASE_URL": primary.dsn()})
        nearsim = CommandLine({"NEARSIM_DATABASE_URL": standby.dsn()})
        for command in READING:
            assert nearsim.run(*command.split()).exit_code == 0, command
        for command in ("pairs --format jsonl", "export --format jsonl", "reindex status"):
            assert nearsim.succeed(*command.split()).out == expected.succeed(*command.split()).out
        for command in WRITING:
            assert "if it is a standby, use its primary" in nearsim.fail(*command.split()), command
        found = {one["check"]: one for one in nearsim.succeed("doctor", "--json").document()["checks"]}
        assert "this server is a standby" in found["standby"]["finding"]
        assert "workers" not in found
        assert all(one["verdict"] == "ok" for one in found.values())
        assert "standby" not in expected.run("doctor").out
