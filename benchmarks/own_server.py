"""Dedicated PostgreSQL servers of any installed major version, for scripts that may damage or kill their server."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nearsim_db.store.database import Database
from nearsim_db.store.embedded.account import server_account
from nearsim_db.store.embedded.binaries import Binaries, embedded_binaries
from nearsim_db.store.embedded.cluster import PostgresCluster, embedded_settings

_DEBIAN = Path("/usr/lib/postgresql")


def binaries_by_major() -> dict[int, Binaries]:
    """Return the programs of the embedded PostgreSQL, and of the installed Debian packages, by major version."""
    debian = [Binaries(program.parent) for program in _DEBIAN.glob("*/bin/postgres")]
    return {binaries.major: binaries for binaries in (*debian, embedded_binaries(server_account()))}


@contextmanager
def own_server(
    major: int, settings: Mapping[str, str] | None = None, kept: Path | None = None
) -> Iterator[PostgresCluster]:
    """Start a server with the settings of the embedded server and the schema; remove its data after the block.

    The data is removed even if SIGTERM ends this process. It is in a temporary folder, which is made readable for other
    users if this process runs as root, because the server then runs as another user. With `kept`, the data is in this
    folder, which is created if necessary, and remains there.
    """
    # SIGTERM would end the process without the `finally` below.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)

    home = (kept or Path(tempfile.mkdtemp(prefix="nearsim-"))).resolve()
    if os.geteuid() == 0:
        home.chmod(0o755)
    results = {**embedded_settings(), **(settings or {})}
    cluster = PostgresCluster(binaries_by_major()[major], home / "data", home / "socket", results)
    try:
        cluster.initialise()
        cluster.start()
        Database.initialise(cluster.dsn())
        yield cluster
    finally:
        cluster.stop()
        if kept is None:
            shutil.rmtree(home)
