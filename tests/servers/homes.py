"""Folders for the data of the servers that a test starts."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from nearsim_db.store.embedded.processes import stop_postmaster

_MEMORY = Path("/dev/shm")
_MEMORY_BYTES = 2 << 30


@contextmanager
def server_home() -> Iterator[Path]:
    """A temporary folder with a short path that the server's user may enter; its servers end with it.

    pytest's tmp_path is closed to the user that runs the server when the tests run as root.
    """
    home = Path(tempfile.mkdtemp(prefix="nearsim-", dir=_memory())).resolve()
    if os.geteuid() == 0:
        home.chmod(0o755)
    try:
        yield home
    finally:
        for watchdog in watchdogs(home):
            watchdog.kill()
        for pid_file in home.glob("**/postmaster.pid"):
            stop_postmaster(pid_file.parent)
        shutil.rmtree(home)


def _memory() -> Path | None:
    """A file system in memory with enough free space, if there is one.

    A database per test creates and deletes 300 files, which took a third of the whole run on ext4.
    """
    roomy = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _MEMORY_BYTES
    return _MEMORY if roomy else None


def watchdogs(home: Path) -> list[psutil.Process]:
    """The watchdogs of the embedded servers in a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            arguments = process.cmdline()
        except psutil.NoSuchProcess:
            continue
        if "nearsim_db.store.embedded.watchdog" in arguments and Path(arguments[-3]).is_relative_to(home):
            found.append(process)
    return found
