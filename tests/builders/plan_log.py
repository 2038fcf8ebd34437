"""Plans that ran: every statement of this process's sessions, with what its nodes read."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import sql

_SETTINGS = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_format": "json",
    "auto_explain.log_level": "notice",
}


@dataclass(frozen=True, slots=True)
class Ran:
    """A statement that ran, and the most rows that one node of its plan looked at."""

    statement: str
    rows: int


@contextmanager
def logged(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Ran]]:
    """A list of the statements of all sessions that this process opens in the block."""
    ran: list[Ran] = []
    connect = psycopg.connect
    with connect(url, autocommit=True) as connection:
        database = sql.Identifier(connection.info.dbname)
        for name, value in _SETTINGS.items():
            command = sql.SQL("ALTER DATABASE {} SET {} = {}")
            setting = sql.SQL(".").join(map(sql.Identifier, name.split(".")))
            connection.execute(command.format(database, setting, sql.Literal(value)))

    def note(diagnostic: psycopg.errors.Diagnostic) -> None:
        message = diagnostic.message_primary or ""
        if "plan:\n" in message:
            explained = json.loads(message.partition("plan:\n")[2])
            rows = max(map(_rows, nodes(explained["Plan"])))
            ran.append(Ran(explained["Query Text"], rows))

    def connect_and_listen(*arguments: Any, **options: Any) -> Any:
        opened = connect(*arguments, **options)
        opened.add_notice_handler(note)
        return opened

    with monkeypatch.context() as patch:
        patch.setattr(psycopg, "connect", connect_and_listen)
        yield ran


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All nodes of a plan, the outermost first."""
    yield node
    for child in node.get("Plans", []):
        yield from nodes(child)


def _rows(node: dict[str, Any]) -> int:
    looked_at = sum(
        number for name, number in node.items() if name == "Actual Rows" or name.startswith("Rows Removed")
    )
    return int(looked_at * node.get("Actual Loops", 0))
