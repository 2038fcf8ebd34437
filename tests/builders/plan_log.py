"""Plans that were executed: of one query or of all statements of this process, and the rows that their nodes read."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql

from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import open_engine
from tests.servers.citus import AnyServer
from tests.servers.databases import Fill

# auto_explain sends each plan to the session as a notice.
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
    """A statement that was executed, and the largest number of rows that a node of its plan read."""

    statement: str
    rows: int


@contextmanager
def logged(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Ran]]:
    """Yield a list to which the statements of all sessions are added that this process opens in the block."""
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


@contextmanager
def plain_session(server: AnyServer, fill: Fill, settings: LiteralString = "") -> Iterator[Connection]:
    """A session on a copy of a filled database, with PostgreSQL's default settings except for `settings`."""
    with server.database(fill) as url:
        engine = open_engine(url)
        with engine.connect(autocommit=True) as connection:
            connection.execute("RESET ALL")
            # It changes no plan, and compiling one takes longer than any query here.
            connection.execute(f"SET jit = off; {settings}")
            yield connection
        engine.dispose()


def explained(
    connection: Connection | psycopg.Connection[Any],
    query: str | sql.Composable,
    parameters: Mapping[str, object] | None = None,
) -> list[dict[str, Any]]:
    """Execute a query, and return the nodes of its plan, the outermost first."""
    composed = sql.SQL(query) if isinstance(query, str) else query
    command = sql.SQL("EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON, TIMING OFF) {}").format(composed)
    row = connection.execute(command, parameters).fetchone()
    assert row is not None
    tree = row[0] if isinstance(row[0], list) else json.loads(str(row[0]))
    return list(nodes(tree[0]["Plan"]))


def rows_read(node: dict[str, Any]) -> float:
    """The number of rows that a node has read in all loops, including the rows that it filtered out."""
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return float((node["Actual Rows"] + removed) * node["Actual Loops"])


def read_by_table(plan_nodes: list[dict[str, Any]]) -> dict[str, float]:
    """The number of rows that were read from each table."""
    rows: dict[str, float] = {}
    for node in plan_nodes:
        if (name := node.get("Relation Name")) and node["Actual Loops"]:
            rows[name] = rows.get(name, 0) + rows_read(node)
    return rows


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All nodes of a plan, the outermost first."""
    yield node
    for child in node.get("Plans", []):
        yield from nodes(child)


def _rows(node: dict[str, Any]) -> int:
    # The plan has averages for one loop.
    looked_at = sum(
        number for name, number in node.items() if name == "Actual Rows" or name.startswith("Rows Removed")
    )
    return int(looked_at * node.get("Actual Loops", 0))
