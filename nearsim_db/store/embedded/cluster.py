"""A PostgreSQL data directory and its server, of any major version."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from nearsim_db.errors import ServerError
from nearsim_db.store.embedded.account import (
    PORT,
    SUPERUSER,
    Account,
    connection_uri,
    server_account,
    socket_path,
)
from nearsim_db.store.embedded.binaries import Binaries
from nearsim_db.store.embedded.processes import (
    Postmaster,
    end_orphans,
    find_postmaster,
    log_tail,
    open_log,
    stop_postmaster,
    try_lock,
    wait_until,
)

_CONFIGURATION = "nearsim.conf"
_START_SECONDS = 300
_LOCK_SECONDS = 30


@dataclass(frozen=True)
class PostgresCluster:
    """A data directory and its server.

    Any client that can reach the socket is trusted. The socket is in a folder that only the server's user (and root)
    may enter; this protects as well as a password in a file beside the socket would.
    """

    binaries: Binaries
    data_directory: Path  # absolute
    socket_directory: Path  # absolute
    # Settings of PostgreSQL, which are written to nearsim.conf at each start.
    settings: Mapping[str, str] = field(default_factory=dict)
    account: Account = field(default_factory=server_account)

    @property
    def log(self) -> Path:
        """Return the path of the server's log, beside the data directory."""
        return self.data_directory.with_name(f"{self.data_directory.name}.log")

    @property
    def name(self) -> str:
        """Return the name in the titles of the server's processes, which is different for each data directory."""
        return f"nearsim-{hashlib.sha256(os.fsencode(self.data_directory)).hexdigest()[:12]}"

    def dsn(self, database: str = SUPERUSER) -> str:
        """Return the URI of a database of this server."""
        return connection_uri(self.socket_directory, database)

    def status(self) -> Postmaster | None:
        """Return the postmaster, or None if the server is not running."""
        return find_postmaster(self.data_directory)

    def stop(self) -> bool:
        """Shut the server down without loss of data; return False if it was not running. Raises ServerError."""
        return stop_postmaster(self.data_directory)

    def initialise(self, database: str = SUPERUSER) -> None:
        """Create the data directory with one database, completely or not at all, unless it exists.

        Raises OSError, and ServerError if the existing directory has another major version or initdb fails.
        """
        if self.data_directory.exists():
            self._require_version()
            return

        parent = self.data_directory.parent
        self.account.require_name()
        self.account.make_folder(parent)
        prefix = f"{self.data_directory.name}.partial-"
        with self._sole_user() as descriptor:
            # Remove the partial directories that killed processes left behind.
            for leftover in parent.glob(f"{prefix}*"):
                shutil.rmtree(leftover)

            partial = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            try:
                self.account.give(partial)
                self._fill(partial, database, descriptor)
                partial.rename(self.data_directory)
            finally:
                # A terminating program may still write files; the next call removes these.
                shutil.rmtree(partial, ignore_errors=True)

    def start(self) -> None:
        """Start the server unless it is running, and wait until it accepts connections.

        Before that, clean up what a killed server left behind. Raises OSError, and ServerError with the end of the log.
        """
        self._require_version()
        self.account.require_entry(self.data_directory.parent)
        if self._is_settled_and_ready():
            return

        end_orphans(self.name)
        with self._sole_user() as descriptor:
            self._remove_stale_files()
            self._make_socket_directory()
            self._write_configuration()
            open_log(self.log, self.account)
            arguments = ["start", "--wait", f"--timeout={_START_SECONDS}"]
            arguments += ["-D", str(self.data_directory), "-l", str(self.log)]
            self._run("pg_ctl", arguments, descriptor)

    def _is_settled_and_ready(self) -> bool:
        """Wait until no start or stop is in progress; return whether the server accepts connections."""

        def is_settled() -> bool:
            postmaster = self.status()
            return postmaster is None or postmaster.state == "ready"

        if not wait_until(is_settled, _START_SECONDS):
            raise ServerError(
                f"The server neither starts nor stops; {self.log} ends with{log_tail(self.log)}"
            )
        return self.status() is not None

    @contextmanager
    def _sole_user(self) -> Iterator[int]:
        """Lock a file, and yield its descriptor, which the server's programs inherit.

        The lock is free again when the last of these programs has ended. Unlike a process id, it also excludes an
        initdb whose client was killed, and a server in another container that shares the folder. Raises ServerError if
        the lock is not free within 30 s.
        """
        path = self.data_directory.with_name(f"{self.data_directory.name}.lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            if not wait_until(lambda: try_lock(descriptor), _LOCK_SECONDS):
                raise ServerError(
                    f"Another server, perhaps in another container, uses {self.data_directory}. Stop it."
                )
            yield descriptor
        finally:
            os.close(descriptor)

    def _fill(self, directory: Path, database: str, descriptor: int) -> None:
        options = ["--encoding=UTF8", f"--username={SUPERUSER}", "--auth-local=trust", "--auth-host=reject"]
        if self.binaries.major >= 17:
            options += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        else:
            options.append("--locale=C.UTF-8")
        if self.settings.get("fsync") == "off":
            options.append("--no-sync")
        self._run("initdb", ["-D", str(directory), *options], descriptor)

        single_user = ["--single", "-D", str(directory), "-c", "exit_on_error=on", "postgres"]
        self._run("postgres", single_user, descriptor, f'CREATE DATABASE "{database}";\n')
        with (directory / "postgresql.conf").open("a", encoding="utf-8") as configuration:
            configuration.write(f"\ninclude '{_CONFIGURATION}'\n")

    def _run(self, program: str, arguments: list[str], descriptor: int, text: str = "") -> None:
        path = self.binaries.program(program)
        completed = self.account.run([path, *arguments], text=text, open_descriptors=[descriptor])
        if completed.returncode != 0:
            output = (completed.stderr or completed.stdout).strip()
            raise ServerError(f"PostgreSQL's {program} failed: {output}{log_tail(self.log)}")

    def _require_version(self) -> None:
        major = self.binaries.major
        try:
            data_major = (self.data_directory / "PG_VERSION").read_text(encoding="ascii").strip()
        except FileNotFoundError:
            raise ServerError(
                f"{self.data_directory} is not a PostgreSQL data directory. Move it away to create a new one."
            ) from None
        if data_major != str(major):
            raise ServerError(
                f"The data directory {self.data_directory} was created by PostgreSQL {data_major}, but the programs "
                f"in {self.binaries.directory} are of PostgreSQL {major}. Dump the data with a server of PostgreSQL "
                f"{data_major} to load them into a new one, or move the folder away to create an empty one."
            )

    def _remove_stale_files(self) -> None:
        # If another process has the process id in these files now, PostgreSQL would take it for a running server.
        socket = socket_path(self.socket_directory)
        for path in (self.data_directory / "postmaster.pid", socket, socket.with_name(f"{socket.name}.lock")):
            path.unlink(missing_ok=True)

    def _make_socket_directory(self) -> None:
        self.account.make_folder(self.socket_directory.parent)
        if not self.socket_directory.exists():
            self.socket_directory.mkdir(mode=0o700)
            self.account.give(self.socket_directory)
        self.account.require_private(self.socket_directory)

    def _write_configuration(self) -> None:
        fixed = {
            "cluster_name": self.name,
            "port": str(PORT),
            "unix_socket_directories": f'"{self.socket_directory}"',
        }
        path = self.data_directory / _CONFIGURATION
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(render_configuration({**self.settings, **fixed}))
        self.account.give(path)


_MEBIBYTE = 1024 * 1024


def embedded_settings() -> dict[str, str]:
    """Return the settings of the embedded server, by PostgreSQL's names; none of them makes commits less durable.

    Clients connect only through the socket, so there is no listening address. There are no replicas, so the write-ahead
    log is minimal: it omits the rows of a table that is loaded in the transaction that creates it.
    """
    memory = memory_bytes() // _MEBIBYTE
    settings = {
        "listen_addresses": "",
        "unix_socket_permissions": "0700",
        "max_connections": "100",
        "jit": "off",
        "work_mem": "64MB",
        # An ingest keeps the ids of a file in a temporary table; a million ids with their index take 100 MB.
        "temp_buffers": "64MB",
        "maintenance_work_mem": f"{min(max(memory // 16, 64), 512)}MB",
        "shared_buffers": f"{min(max(memory // 8, 128), 1024)}MB",
        "effective_cache_size": f"{max(memory // 2, 256)}MB",
        "random_page_cost": "1.1",
        "max_wal_size": "4GB",
        "checkpoint_timeout": "15min",
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "log_line_prefix": "%m [%p] ",
        "log_checkpoints": "off",
        # The user is named nearsim, so without this, tables created by hand would go into the schema of the same name.
        "search_path": "public",
        # Statements that fail may contain whole documents, so they are not logged.
        "log_min_error_statement": "panic",
    }

    # Parallel queries need more shared memory than containers provide by default.
    if _shared_memory_is_small():
        settings["dynamic_shared_memory_type"] = "sysv"
    return settings


def memory_bytes() -> int:
    """Return the memory of the machine, or the limit of the container if it is smaller."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(total, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    except (OSError, ValueError):
        return total


def _shared_memory_is_small() -> bool:
    """Whether /dev/shm is too small for parallel joins; the default of container engines is 64 MB."""
    try:
        state = os.statvfs("/dev/shm")
    except OSError:
        return True
    return state.f_blocks * state.f_frsize < 1024 * _MEBIBYTE


def render_configuration(settings: Mapping[str, str]) -> str:
    """Return a PostgreSQL configuration file with these settings."""
    lines = [
        "# Written by nearsim at each start; put your own settings into postgresql.conf, below the include."
    ]
    for name, value in sorted(settings.items()):
        quoted = value.replace("\\", "\\\\").replace("'", "''")
        lines.append(f"{name} = '{quoted}'")
    return "\n".join([*lines, ""])
