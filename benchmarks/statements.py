"""What each statement costs a server: calls, rows, WAL and time of pg_stat_statements, processor time of its log."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import psycopg

from nearsim_db.store.driver.statements import parse_blocks

# getrusage of each statement goes to the log: pg_stat_statements has only wall-clock time, waiting for the client
# included.
SETTINGS = {
    "shared_preload_libraries": "pg_stat_statements",
    "log_statement_stats": "on",
    "log_min_error_statement": "log",
    "log_line_prefix": "%m [%p] ",
}
_COUNTED = """
SELECT query, calls, total_exec_time, rows, wal_bytes::bigint
FROM pg_stat_statements WHERE query !~ 'pg_stat_'
"""
_USED = re.compile(r"^\t!\t([\d.]+) s user, ([\d.]+) s system", re.MULTILINE)
_MESSAGE = re.compile(r"^\d{4}-\d\d-\d\d \S+ \S+ \[\d+\] ", re.MULTILINE)
_CONSTANT = re.compile(r"\$\d+|'[^']*'|\b(?:\d+|true|false|null)\b", re.IGNORECASE)
_COMMENT = re.compile(r"--[^\n]*")
_SHOWN = 90


@dataclass(frozen=True, slots=True)
class Statement:
    """What the calls of one statement cost: seconds of processor time without parallel workers, seconds on the clock,
    and bytes of WAL.
    """

    text: str
    calls: int
    processor: float
    clock: float
    rows: int
    wal_bytes: int


def read_statements(connection: "psycopg.Connection[tuple[object, ...]]", log: str) -> list[Statement]:
    """Return the statements since the last reset and in this part of the log, the costliest first."""
    counted: dict[str, tuple[float, ...]] = {}
    for query, *figures in connection.execute(_COUNTED):
        had = counted.get(normalise(str(query)), (0.0,) * 4)
        counted[normalise(str(query))] = tuple(
            one + float(str(more)) for one, more in zip(had, figures, strict=True)
        )
    used: dict[str, float] = dict.fromkeys(counted, 0.0)
    names: dict[str, str] = {}
    for query, seconds in logged_statements(log):
        # Several statements in one string are one entry of the log, and separate ones of pg_stat_statements.
        text = normalise(query)
        key = (
            text
            if text in counted
            else max((one for one in counted if text.startswith(one)), key=len, default=text)
        )
        used[key] = used.get(key, 0.0) + seconds
        names[key] = name_in(query) or names.get(key, key[:_SHOWN])
    found = []
    for key, seconds in used.items():
        calls, clock, rows, wal = counted.get(key, (0.0,) * 4)
        name = names.get(key, key[:_SHOWN])
        found.append(Statement(name, int(calls), seconds, clock / 1e3, int(rows), int(wal)))
    return sorted(found, key=lambda one: (one.processor, one.clock), reverse=True)


def logged_statements(log: str) -> Iterator[tuple[str, float]]:
    """Yield the statements in a log written with `SETTINGS`, each with its processor seconds."""
    seconds = 0.0
    for message in _MESSAGE.split(log):
        if found := _USED.search(message):
            seconds = float(found[1]) + float(found[2])
        elif message.startswith("STATEMENT:"):
            yield message.removeprefix("STATEMENT:"), seconds
            seconds = 0.0


def normalise(query: str) -> str:
    """Return a statement in one line, without comments, its constants and parameters replaced by ?."""
    return _CONSTANT.sub("?", " ".join(_COMMENT.sub("", query).split())).rstrip("; ")


def name_in(query: str) -> str | None:
    """Return the name of one of the store's statements by its comment, None for any other statement."""
    comments = (one.strip() for one in _COMMENT.findall(query))
    return next((_names()[one] for one in comments if one in _names()), None)


@cache
def _names() -> Mapping[str, str]:
    """The names of the store's statements by the first line of their comments."""
    folder = files("nearsim_db.store") / "sql"
    blocks = [block for file in folder.iterdir() for block in parse_blocks(file.read_text("utf-8"))]
    return {text.partition("\n")[0]: name for name, text in blocks}


def statement_table(statements: Sequence[Statement], server_seconds: float, top: int) -> str:
    """Return the costliest statements as Markdown, and what else the server's processes used."""
    lines = [
        "| processor, ms | clock, ms | calls | rows | WAL, MB | statement |",
        "|---|---|---|---|---|---|",
    ]
    for one in statements[:top]:
        times = f"{one.processor * 1e3:,.0f} | {one.clock * 1e3:,.0f}"
        text = one.text.replace("|", "\\|")
        lines.append(f"| {times} | {one.calls:,} | {one.rows:,} | {one.wal_bytes / 1e6:,.1f} | {text} |")
    processor = sum(one.processor for one in statements)
    others = max(0.0, server_seconds - processor) * 1e3
    lines.append(
        f"| {processor * 1e3:,.0f} | {sum(one.clock for one in statements) * 1e3:,.0f} | | | | all |"
    )
    lines.append(f"| {others:,.0f} | | | | | parallel workers, checkpoints, autovacuum, sessions |")
    return "\n".join(lines)
