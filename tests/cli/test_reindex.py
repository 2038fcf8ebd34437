"""nearsim reindex: from start to drop."""

import signal
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from tests.builders.command_line import CommandLine
from tests.builders.filled import address_of
from tests.builders.reindex_world import fill
from tests.builders.workers import BLOCKED, PATIENCE_SECONDS, application, running, wait_until

# A collection with a live index.
url = address_of(fill)


@pytest.fixture
def nearsim(url: str, tmp_path: Path) -> CommandLine:
    """`nearsim` on that database."""
    return CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_HOME": str(tmp_path / "home")})


def of_the_second(nearsim: CommandLine) -> dict[str, Any]:
    """The status of generation 2."""
    states = nearsim.succeed("reindex", "status", "--json").document()
    (status,) = [one for one in states if one["generation"] == 2]
    return cast("dict[str, Any]", status)


def test_reindex_from_start_to_drop(nearsim: CommandLine) -> None:
    started = nearsim.succeed("reindex", "start", "--set", "match.threshold=0.3", "--json").document()
    assert (started["state"], started["replaces"]) == ("ready", 1)
    assert started["differs"] == {"match.threshold": 0.3} and started["bytes"] > 0
    assert "back to it: nearsim reindex rollback\n" in nearsim.succeed("reindex", "promote").err
    assert "nearsim reindex promote --generation 2\n" in nearsim.succeed("reindex", "rollback").err
    assert nearsim.succeed("reindex", "promote", "-g", 2, "--json").document()["live"] == 2
    assert "generation 1" in nearsim.succeed("reindex", "drop", "--yes").err
    assert "nothing to drop" in nearsim.succeed("reindex", "drop", "--all", "--yes").err
    nearsim.fail("reindex", "drop", "default", "--all", "--yes", exit_code=2)
    promoted = nearsim.succeed("reindex", "start", "--promote", "--json").document()
    assert (promoted["live"], promoted["retired"], promoted["promoted"]) == (3, 2, True)


@pytest.mark.slow("several builds")
def test_builds_are_paused_resumed_and_abandoned(nearsim: CommandLine) -> None:
    assert "start one: nearsim worker\n" in nearsim.succeed("reindex", "start", "--detach").err
    assert "nearsim reindex status" in nearsim.fail("reindex", "promote")
    assert "nearsim reindex resume" in nearsim.succeed("reindex", "pause").err
    assert "nearsim reindex resume" in nearsim.fail("reindex", "start")
    status = of_the_second(nearsim)
    assert (status["state"], status["detached"], status["seconds_left"]) == ("paused", True, None)
    assert nearsim.succeed("reindex", "resume", "--json").document()["state"] == "ready"
    assert "nearsim reindex drop" in nearsim.succeed("reindex", "abandon", "--yes").err
    nearsim.succeed("reindex", "drop", "--yes")


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_builds_are_reported_and_resumed(
    nearsim: CommandLine, url: str, number: signal.Signals
) -> None:
    """The build is stopped in its last step, while it waits for a lock that the test holds."""
    with psycopg.connect(url) as holding, application(url) as looking:
        holding.execute("LOCK TABLE nearsim_index.cluster_member_shared IN SHARE MODE")
        with nearsim.started("reindex", "start") as building:
            wait_until(looking, BLOCKED)
            status = of_the_second(nearsim)
            assert (status["state"], status["stage"], status["attended"]) == ("building", "clusters", True)
            assert 0 < status["percent"] < 100 and status["seconds_left"] >= 0
            building.send_signal(number)
            _, said = building.communicate(timeout=PATIENCE_SECONDS)
        holding.rollback()
        wait_until(looking, "SELECT NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory')")
    if number == signal.SIGINT:
        assert building.returncode == 130
        assert "nearsim reindex resume" in said
    assert of_the_second(nearsim)["left_behind"]
    assert "to give it up: nearsim reindex abandon" in nearsim.run("doctor").out
    for refused in (("promote",), ("start",), ("diff", "-g", 2)):
        assert "left behind" in (reported := nearsim.fail("reindex", *refused))
        assert "nearsim reindex resume" in reported and "nearsim reindex abandon" in reported
    if number == signal.SIGINT:
        assert nearsim.succeed("reindex", "resume", "--json").document()["state"] == "ready"
        return
    with running(url) as worker, application(url) as looking:
        worker.wait_for_line(
            "the build of generation 2 of profile default of collection default was left behind"
        )
        nearsim.succeed("reindex", "resume", "--detach")
        worker.wait_for_line("has caught up; compare: nearsim reindex diff; then: nearsim reindex promote")
        wait_until(looking, "SELECT state = 'ready' FROM nearsim.generation WHERE generation_id = 2")
        assert len([line for line in worker.lines if "left behind" in line]) == 1


@pytest.mark.slow("kills a process")
def test_build_of_a_killed_worker_is_continued_by_the_next(nearsim: CommandLine, url: str) -> None:
    with psycopg.connect(url) as holding, application(url) as looking:
        holding.execute("LOCK TABLE nearsim_index.cluster_member_shared IN SHARE MODE")
        nearsim.succeed("reindex", "start", "--detach")
        with running(url) as first:
            first.wait_for_line("building profile default of collection default (generation 2)")
            wait_until(looking, BLOCKED)
            first.signal(signal.SIGKILL)
            first.wait()
        holding.rollback()
        nearsim.succeed("worker", "--once", "--quiet")
    status = of_the_second(nearsim)
    assert (status["state"], status["left_behind"]) == ("ready", False)
