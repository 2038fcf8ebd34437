"""The command line without NEARSIM_DATABASE_URL: the embedded server starts on demand."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.builders.command_line import CommandLine
from tests.servers.homes import server_home


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """`nearsim` with a home of its own, in which there is no server yet."""
    monkeypatch.delenv("NEARSIM_DATABASE_URL", raising=False)
    with server_home() as home:
        yield CommandLine({"NEARSIM_HOME": str(home)})


def test_embedded_server_starts_on_first_use_and_stops(embedded: CommandLine, stories: Path) -> None:
    status = embedded.succeed("server", "status", "--json").document()
    assert (status["server"], status["running"], status["schema_revision"]) == ("embedded", False, None)
    assert embedded.succeed("server", "stop").err == "the embedded server was not running\n"
    embedded.succeed("ingest", stories, "--quiet")
    assert len(embedded.succeed("pairs", "--format", "jsonl").rows()) == 3
    (url,) = embedded.succeed("server", "url").out.splitlines()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM nearsim.document").fetchone() == (5,)
    embedded.succeed("server", "start")
    status = embedded.succeed("server", "status", "--json").document()
    assert (status["running"], status["kept"]) == (True, True)
    assert status["schema_revision"] is not None
    assert embedded.succeed("doctor", "--json").document()["ok"] is True
    assert embedded.succeed("server", "stop").err == "stopped the embedded server\n"
    assert embedded.succeed("server", "status", "--json").document()["running"] is False
