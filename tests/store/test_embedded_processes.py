"""Distinguishing a running server from leftovers of a killed one, and an idle server from one in use."""

import fcntl
import os
from pathlib import Path

import pytest

from nearsim_db.errors import ServerError
from nearsim_db.store.embedded import cluster
from nearsim_db.store.embedded.account import Account
from nearsim_db.store.embedded.binaries import installed_binaries
from nearsim_db.store.embedded.cluster import embedded_settings, render_configuration
from nearsim_db.store.embedded.embedded import ServerHome
from nearsim_db.store.embedded.processes import bound_log, find_postmaster, log_tail, stop_postmaster
from nearsim_db.store.embedded.watchdog import Idleness, watch


@pytest.mark.parametrize("content", [None, "", "no number\n", "1\n/elsewhere\n", "4194305\n"])
def test_pid_file_alone_is_not_trusted(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "postmaster.pid").write_text(content, encoding="ascii")
    assert find_postmaster(tmp_path) is None
    assert stop_postmaster(tmp_path) is False


def test_data_directory_in_use_elsewhere_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_LOCK_SECONDS", 0.05)
    current = Account("somebody", os.geteuid(), os.getegid())
    here = cluster.Cluster(installed_binaries(), tmp_path / "data", tmp_path / "socket", account=current)
    with (tmp_path / "data.lock").open("w") as elsewhere:
        fcntl.flock(elsewhere, fcntl.LOCK_EX)
        with pytest.raises(ServerError, match=f"Another server.*uses {tmp_path / 'data'}"):
            here.initialise()
    assert [path.name for path in tmp_path.iterdir()] == ["data.lock"]


def test_idleness_counts_from_the_last_client_and_the_last_request() -> None:
    idleness = Idleness(quiet_since=100.0, last_request=7)
    assert idleness.seconds(130.0, clients=0, last_request=7) == 30.0
    assert idleness.seconds(140.0, clients=2, last_request=7) == 0.0
    assert idleness.seconds(150.0, clients=0, last_request=7) == 10.0
    assert idleness.seconds(160.0, clients=0, last_request=8) == 0.0
    assert idleness.seconds(190.0, clients=0, last_request=8) == 30.0


def test_the_watchdog_adds_no_file_to_a_home_that_is_being_removed(tmp_path: Path) -> None:
    home = ServerHome(tmp_path)
    home.data_directory.mkdir(parents=True)
    watch(home, idle_seconds=0.01)
    assert not (home.folder / "lock").exists()


def test_configuration_quotes_values_and_is_durable() -> None:
    lines = render_configuration({"b": r"it's \a", "a": "on"}).splitlines()
    assert lines[1:] == ["a = 'on'", r"b = 'it''s \\a'"]
    assert not {"fsync", "synchronous_commit", "full_page_writes"} & embedded_settings().keys()


def test_log_is_truncated_to_its_end(tmp_path: Path) -> None:
    log = tmp_path / "data.log"
    log.write_text("short\n", encoding="ascii")
    bound_log(log)
    assert log.read_text(encoding="ascii") == "short\n"
    line = b"x" * 1023 + b"\n"
    log.write_bytes(line * 11 * 1024 + b"the end\n")
    bound_log(log)
    assert log.stat().st_size == 0
    assert (tmp_path / "data.log.1").stat().st_mode & 0o777 == 0o600
    kept = (tmp_path / "data.log.1").read_bytes()
    assert len(kept) == 1024 * 1024
    assert kept.endswith(b"\nthe end\n")


def test_log_tail_gives_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "data.log"
    assert log_tail(log) == ""
    log.write_text("".join(f"line {number}\n" for number in range(100)), encoding="ascii")
    assert log_tail(log, lines=2) == "\n  line 98\n  line 99"
