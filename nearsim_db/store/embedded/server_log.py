"""The server's log: one file, bounded, whose end is quoted when something fails."""

import os
from pathlib import Path

from nearsim_db.store.embedded.account import Account

_LARGEST_BYTES = 10 * 1024 * 1024
_KEPT_BYTES = 1024 * 1024


def open_log(log: Path, account: Account) -> None:
    """Make sure that the log exists and that the server's user may write to it."""
    os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
    account.give(log)
    bound_log(log)


def bound_log(log: Path) -> None:
    """Empty a log that has grown beyond 10 MB, keeping its end beside it; the server may be writing to it."""
    if log.exists() and log.stat().st_size > _LARGEST_BYTES:
        with log.open("rb") as file:
            file.seek(-_KEPT_BYTES, os.SEEK_END)
            log.with_name(f"{log.name}.1").write_bytes(file.read())
        os.truncate(log, 0)


def log_tail(log: Path, lines: int = 15) -> str:
    """The last lines of the log, each indented on a line of its own; empty if there is no log."""
    try:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return ""
    return "".join(f"\n  {line}" for line in tail)
