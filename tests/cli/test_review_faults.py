"""The review desk while its process or its database is killed."""

import threading
from http.client import HTTPException
from pathlib import Path

import pytest

from nearsim_db import Index
from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.review_desk import Desk, desk
from tests.builders.server_kills import kill
from tests.builders.workers import application, ask, wait_until
from tests.cli.test_review import WORDS, judge, shown, verdicts
from tests.servers.citus import AnyServer

pytestmark = pytest.mark.slow("kills servers")

DECIDED = "SELECT count(*) FROM nearsim.review WHERE decided_at IS NOT NULL"


def rows(folder: Path) -> Path:
    """Three texts that differ in a number."""
    given = ({"id": f"d{at}", "text": f"{WORDS} {at}"} for at in range(3))
    return write_jsonl(folder / "rows.jsonl", given)


def test_a_decision_of_a_killed_desk_is_whole_or_not_made(
    nearsim: CommandLine, database_url: str, tmp_path: Path
) -> None:
    nearsim.succeed("ingest", rows(tmp_path), "-q")
    with desk(nearsim, "--by", "anna") as opened, application(database_url) as connection:
        values = shown(opened.request("/queue/numbers").body)
        with connection.transaction():
            connection.execute("LOCK TABLE nearsim.verdict IN EXCLUSIVE MODE")
            sending = threading.Thread(target=send, args=(opened, values | {"answer": "same"}))
            sending.start()
            wait_until(connection, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted")
            opened.process.kill()
            opened.process.wait()
            sending.join()
        wait_until(connection, "SELECT count(*) = 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        decided = ask(connection, DECIDED)
        assert (decided, len(verdicts(nearsim))) in ((0, 0), (1, 1))
    with desk(nearsim, "--by", "anna") as opened:
        if decided == 0:
            assert judge(opened, "same") == values
        assert verdicts(nearsim) == [("pinned", "anna")]
        assert opened.request("/undo", {}).status == 303
        assert verdicts(nearsim) == []


def send(opened: Desk, values: dict[str, str]) -> None:
    """Send a decision to a process that is killed before it answers."""
    with pytest.raises((OSError, HTTPException)):
        opened.request("/decide", values)


def test_a_lost_database_is_reported_and_the_desk_goes_on_when_it_is_back(
    server_to_kill: AnyServer, tmp_path: Path
) -> None:
    with server_to_kill.database() as url:
        nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_HOME": str(tmp_path / "home")})
        nearsim.succeed("ingest", rows(tmp_path), "-q")
        with desk(nearsim, "--by", "anna") as opened:
            first = judge(opened, "same")
            values = shown(opened.request("/queue/numbers").body)
            assert values != first
            kill(server_to_kill.cluster)
            lost = opened.request("/decide", values | {"answer": "different"})
            assert (lost.status, "The database cannot be reached" in lost.body) == (503, True)
            assert opened.request("/").status == 503
            server_to_kill.cluster.start()
            assert opened.request("/").status == 200
            again = opened.request("/decide", values | {"answer": "different"})
            assert again.status == 303
            with Index.connect(url) as index:
                index.build()
            assert sorted(verdicts(nearsim)) == [("pinned", "anna"), ("vetoed", "anna")]
