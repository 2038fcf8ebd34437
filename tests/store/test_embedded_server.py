"""The embedded server, tested with real servers and killed processes."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import LiteralString

import psutil
import psycopg
import pytest
import sqlalchemy

from nearsim_db.errors import ServerError
from nearsim_db.store.embedded import ensure_running, start, status, stop
from nearsim_db.store.embedded.account import Account, server_account
from nearsim_db.store.embedded.binaries import installed_binaries
from nearsim_db.store.embedded.cluster import PostgresCluster
from nearsim_db.store.embedded.processes import wait_until
from tests.builders.selection import some_combinations
from tests.servers.homes import server_home, watchdogs
from tests.servers.programs import programs

QUICK = {"fsync": "off", "shared_buffers": "16MB"}
DEADLINE_SECONDS = 60.0
ENSURE = """
import sys
from pathlib import Path
from nearsim_db.errors import ServerError
from nearsim_db.store.embedded import ensure_running, status
home = Path(sys.argv[1])
try:
    print(ensure_running(home, overrides={"fsync": "off"}), status(home).pid)
except ServerError as error:
    print(error)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    with server_home() as folder:
        yield folder


@pytest.fixture(scope="module")
def used_home() -> Iterator[Path]:
    """A home whose server several tests use, none of which stops it."""
    with server_home() as folder:
        ensure_running(folder)
        yield folder


def ask(address: str, query: LiteralString, *parameters: str) -> object:
    with psycopg.connect(address) as connection:
        row = connection.execute(query, parameters).fetchone()
    assert row is not None
    return row[0]


def pid_of(home: Path) -> int:
    pid = status(home).pid
    assert pid is not None
    return pid


def psql(address: str, statement: str) -> subprocess.Popen[str]:
    program = installed_binaries().program("psql")
    return subprocess.Popen([program, address, "-Atc", statement], stdout=subprocess.PIPE, text=True)


def wait_for_statement(address: str, statement: str) -> None:
    running = "SELECT count(*) FROM pg_stat_activity WHERE query = %s AND state = 'active'"
    assert wait_until(lambda: ask(address, running, statement) == 1, DEADLINE_SECONDS)


def test_first_call_creates_a_durable_utf8_database_that_status_describes(used_home: Path) -> None:
    address = ensure_running(used_home)
    assert ask(address, "SELECT current_database() || ' ' || current_user") == "nearsim nearsim"
    shown = {
        "server_encoding": "UTF8",
        "jit": "off",
        "work_mem": "64MB",
        "temp_buffers": "64MB",
        "listen_addresses": "",
        "max_wal_size": "4GB",
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "autovacuum": "on",
    }
    assert {name: ask(address, "SELECT current_setting(%s)", name) for name in shown} == shown
    assert ask(address, "SELECT lower('ÄÉ')") == "äé"
    assert ask(address, "SHOW search_path") == "public"
    state = status(used_home)
    assert (state.running, state.kept, state.dsn) == (True, False, address)
    assert state.pid is not None
    assert psutil.Process(state.pid).name() == "postgres"
    assert state.version == ask(address, "SHOW server_version")
    assert str(state.data_directory) == ask(address, "SHOW data_directory")
    assert "ready to accept connections" in state.log.read_text(encoding="utf-8")
    assert psql(address, "SELECT 6 * 7").communicate()[0] == "42\n"
    engine = sqlalchemy.create_engine(address.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        assert connection.scalar(sqlalchemy.text("SELECT 6 * 7")) == 42
    engine.dispose()


def test_processes_share_the_server_and_calls_are_quick(used_home: Path) -> None:
    address, pid = ensure_running(used_home), pid_of(used_home)
    shown = subprocess.run(
        [sys.executable, "-c", ENSURE, used_home], capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"{address} {pid}\n"
    seconds = []
    for _ in range(10):
        begun = time.perf_counter()
        ensure_running(used_home)
        seconds.append(time.perf_counter() - begun)
    assert min(seconds) < 0.03


def test_other_users_cannot_enter_folders_or_open_or_lock_files(used_home: Path) -> None:
    folder = used_home / "postgresql"
    for private in (folder / "data", folder / "socket"):
        assert private.stat().st_mode & 0o777 == 0o700
        assert private.stat().st_uid == server_account().user_id
    locks = [path for path in folder.iterdir() if path.name == "lock" or path.suffix == ".lock"]
    assert {"lock", "watchdog.lock", "data.lock"} <= {path.name for path in locks}
    logs = list(folder.glob("*.log*"))
    assert logs and all(path.stat().st_mode & 0o077 == 0 for path in (*locks, *logs))
    if os.geteuid() == 0:
        nobody = Account("nobody", 65534, 65534)
        for lock in locks:
            tried = nobody.run(["flock", "--nonblock", str(lock), "true"])
            assert tried.returncode != 0 and "Permission denied" in tried.stderr
        assert ask(ensure_running(used_home), "SELECT 1") == 1


@pytest.mark.slow("starts a server of its own")
def test_locks_of_an_earlier_version_are_closed_to_other_users(home: Path) -> None:
    folder = home / "postgresql"
    folder.mkdir(mode=0o755)
    for name in ("lock", "watchdog.lock"):
        (folder / name).touch()
        (folder / name).chmod(0o644)
    ensure_running(home, overrides=QUICK)
    assert [(folder / name).stat().st_mode & 0o777 for name in ("lock", "watchdog.lock")] == [0o600, 0o600]


def test_killed_client_does_not_affect_the_server(used_home: Path) -> None:
    address, pid = ensure_running(used_home), pid_of(used_home)
    client = psql(address, "SELECT pg_sleep(600)")
    wait_for_statement(address, "SELECT pg_sleep(600)")
    client.kill()
    client.communicate()
    assert ensure_running(used_home) == address
    assert pid_of(used_home) == pid
    assert ask(address, "SELECT 1") == 1


@pytest.mark.slow("kills a process")
def test_single_watchdog_is_replaced_when_killed(used_home: Path) -> None:
    ensure_running(used_home)
    assert wait_until(lambda: len(watchdogs(used_home)) == 1, DEADLINE_SECONDS)
    [first] = watchdogs(used_home)
    first.kill()
    first.wait(DEADLINE_SECONDS)  # it is out of sight before its lock is free
    ensure_running(used_home)
    assert wait_until(lambda: len(watchdogs(used_home)) == 1, DEADLINE_SECONDS)
    assert watchdogs(used_home) != [first]


@pytest.mark.slow("starts servers of its own")
def test_server_without_its_socket_is_restarted(home: Path) -> None:
    address = ensure_running(home, overrides=QUICK)
    (home / "postgresql" / "socket" / ".s.PGSQL.5432").unlink()
    assert ensure_running(home, overrides=QUICK) == address
    assert ask(address, "SELECT 1") == 1


@pytest.mark.slow("kills a server")
def test_killed_server_recovers_while_a_backend_continues(home: Path) -> None:
    address, pid = ensure_running(home), pid_of(home)
    with psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    # A busy backend does not notice that its postmaster is gone.
    statement = "SELECT count(*) FROM generate_series(1, 10000000000) AS one"
    client = psql(address, statement)
    wait_for_statement(address, statement)
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: status(home).pid is None, DEADLINE_SECONDS)
    assert client.poll() is None
    assert ensure_running(home) == address
    assert pid_of(home) != pid
    assert ask(address, "SELECT answer FROM kept") == 42
    client.communicate()
    assert client.returncode != 0


@pytest.mark.slow("starts servers of its own")
def test_recycled_process_id_is_detected(home: Path) -> None:
    address = ensure_running(home, overrides=QUICK)
    folder = home / "postgresql"
    pid_file, socket_lock = folder / "data" / "postmaster.pid", folder / "socket" / ".s.PGSQL.5432.lock"
    left = {path: path.read_text(encoding="ascii") for path in (pid_file, socket_lock)}
    old_pid = pid_of(home)
    assert stop(home)
    account = server_account()
    with subprocess.Popen(
        ["cat"],
        stdin=subprocess.PIPE,
        user=None if account.is_current else account.user_id,
        group=None if account.is_current else account.group_id,
        extra_groups=None if account.is_current else [],
    ) as bystander:
        for path, text in left.items():
            path.write_text(text.replace(str(old_pid), str(bystander.pid), 1), encoding="ascii")
        assert not status(home).running
        assert ensure_running(home, overrides=QUICK) == address
        assert ask(address, "SELECT 1") == 1
        assert bystander.poll() is None


@pytest.mark.slow("waits until a server stops")
def test_idle_server_stops_unless_a_client_is_connected(home: Path) -> None:
    address = ensure_running(home, idle_seconds=0.5, overrides=QUICK)
    pid = pid_of(home)
    assert ask(address, "SELECT pg_sleep(1.5) IS NULL") is False
    assert pid_of(home) == pid
    assert wait_until(lambda: status(home).pid is None, DEADLINE_SECONDS)
    assert wait_until(lambda: not watchdogs(home), DEADLINE_SECONDS)
    assert ask(ensure_running(home, overrides=QUICK), "SELECT 1") == 1


@pytest.mark.slow("starts servers of its own")
def test_kept_server_runs_until_stopped(home: Path) -> None:
    ensure_running(home, idle_seconds=0.4, overrides=QUICK)
    start(home)
    pid = pid_of(home)
    assert status(home).kept
    assert not wait_until(lambda: status(home).pid != pid, 1.2)
    assert stop(home)
    state = status(home)
    assert (state.running, state.kept, state.pid) == (False, False, None)
    assert not stop(home)


def test_status_and_stop_without_a_server(home: Path) -> None:
    state = status(home / "none")
    assert (state.running, state.kept, state.pid) == (False, False, None)
    assert not stop(home / "none")
    assert not (home / "none").exists()


@pytest.mark.slow("starts servers of its own")
def test_four_concurrent_processes_start_one_server(home: Path) -> None:
    command = [sys.executable, "-c", ENSURE, str(home)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    shown = {process.communicate()[0] for process in processes}
    state = status(home)
    assert shown == {f"{state.dsn} {state.pid}\n"}
    assert ask(state.dsn, "SELECT 1") == 1
    assert wait_until(lambda: len(watchdogs(home)) == 1, DEADLINE_SECONDS)


@pytest.mark.slow("starts servers of its own")
def test_incomplete_data_directory_is_replaced(home: Path) -> None:
    folder = home / "postgresql"
    with subprocess.Popen([sys.executable, "-c", ENSURE, home], stdout=subprocess.DEVNULL) as process:
        assert wait_until(lambda: any(folder.glob("data.partial-*/base")), DEADLINE_SECONDS)
        process.kill()
    assert not (folder / "data").exists()
    assert ask(ensure_running(home, overrides=QUICK), "SELECT 1") == 1
    assert not list(folder.glob("data.partial-*"))


@pytest.mark.slow("starts servers of its own")
def test_long_path_with_special_characters_and_strict_umask(home: Path) -> None:
    long_home = home / ("it's a long name " * 6).strip()
    code = f"import os; os.umask(0o077)\n{ENSURE}"
    shown = subprocess.run(
        [sys.executable, "-c", code, long_home], capture_output=True, text=True, check=True
    )
    address = status(long_home).dsn
    assert shown.stdout.startswith(address)
    assert ask(address, "SHOW data_directory") == str(long_home / "postgresql" / "data")
    [socket_directory] = [
        Path(part) for part in [str(ask(address, "SHOW unix_socket_directories")).strip('"')]
    ]
    stop(long_home)
    socket_directory.rmdir()


def test_data_of_another_major_version_are_refused(home: Path) -> None:
    data = home / "postgresql" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("14\n", encoding="ascii")
    with pytest.raises(ServerError, match="PostgreSQL 14"):
        ensure_running(home)


@pytest.mark.slow("starts a cluster")
def test_start_failure_shows_the_log(home: Path) -> None:
    with pytest.raises(ServerError, match='invalid value for parameter "work_mem": "plenty"'):
        ensure_running(home, overrides={**QUICK, "work_mem": "plenty"})
    assert ask(ensure_running(home, overrides=QUICK), "SELECT 1") == 1


@pytest.mark.slow("starts servers of its own")
def test_full_disk_is_reported_and_leaves_nothing_behind(home: Path) -> None:
    code = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))\n{ENSURE}"
    shown = subprocess.run([sys.executable, "-c", code, home], capture_output=True, text=True, check=True)
    assert "initdb failed" in shown.stdout
    assert not list((home / "postgresql").glob("data*/*"))
    assert ask(ensure_running(home, overrides=QUICK), "SELECT 1") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_root_reports_an_inaccessible_parent_and_leaves_it_unchanged(home: Path) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(ServerError, match=f"may not enter {closed}"):
        ensure_running(closed / "nearsim")
    assert closed.stat().st_mode & 0o777 == 0o700
    assert list(closed.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
@some_combinations(("mode", [0o700, 0o755, 0o777]), ("part", ["", "nearsim", "share/nearsim"]))
def test_root_creates_nothing_in_a_folder_of_another_user(home: Path, mode: int, part: str) -> None:
    theirs = home / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    theirs.chmod(mode)
    with pytest.raises(ServerError, match=f"may not enter {theirs}|{theirs} belongs to another user"):
        ensure_running(theirs / part)
    assert list(theirs.iterdir()) == []


def test_missing_programs_leave_no_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)
    with pytest.raises(ServerError, match="not installed"):
        ensure_running(home / "nearsim")
    assert list(home.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
def test_a_home_of_another_user_is_refused(home: Path) -> None:
    folder = home / "postgresql"
    folder.mkdir()
    os.chown(folder, server_account().user_id, server_account().group_id)
    with pytest.raises(ServerError, match="belongs to another user"):
        ensure_running(home)


@pytest.mark.slow("starts servers of its own")
@pytest.mark.each_major
def test_a_cluster_of_any_major_version_starts_and_stops(home: Path, major: int) -> None:
    cluster = PostgresCluster(programs()[major], home / "data", home / "socket", QUICK)
    cluster.initialise()
    cluster.start()
    cluster.start()
    assert str(ask(cluster.dsn(), "SHOW server_version")).startswith(str(major))
    assert ask(cluster.dsn("postgres"), "SHOW fsync") == "off"
    assert ask(cluster.dsn(), "SELECT lower('ÄÉ')") == "äé"
    assert cluster.stop()
    assert cluster.status() is None
    assert not cluster.stop()
