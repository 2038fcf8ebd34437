"""The server's log: one file of bounded size, whose end is quoted in errors."""

import os
from pathlib import Path

from nearsim_db.store.embedded.account import Account

_LARGEST_BYTES = 10 * 1024 * 1024
_KEPT_BYTES = 1024 * 1024


def open_log(log: Path, account: Account) -> None:
    """Create the log if it is missing, and make it writable for the server's user."""
    os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
    account.give(log)
    bound_log(log)


def bound_log(log: Path) -> None:
    """Truncate a log larger than 10 MB, keeping its end beside it; the server may be writing to it."""
    if log.exists() and log.stat().st_size > _LARGEST_BYTES:
        with log.open("rb") as file:
            file.seek(-_KEPT_BYTES, os.SEEK_END)
            end = file.read()
        # Details of errors may quote documents.
        kept = log.with_name(f"{log.name}.1")
        with os.fdopen(
            os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb"
        ) as older:
            os.fchmod(older.fileno(), 0o600)
            older.write(end)
        os.truncate(log, 0)


def log_tail(log: Path, lines: int = 15) -> str:
    """Return the last lines of the log, each indented on its own line; empty without a log."""
    try:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return ""
    return "".join(f"\n  {line}" for line in tail)
