"""Migrations of tables in use: short lock waits, concurrent indexes, and validation after the last revision."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.connection import Backend, autocommitting
from nearsim_db.store.driver.locks import Lock
from nearsim_db.store.driver.statements import statement

if TYPE_CHECKING:
    from sqlalchemy import Connection as AlchemyConnection


def backend_of(connection: "AlchemyConnection") -> Backend:
    """Return the psycopg connection below SQLAlchemy's."""
    inner = connection.connection.driver_connection
    assert isinstance(inner, psycopg.Connection)
    return inner


def set_upgrade_limits(session: Backend, milliseconds: int) -> None:
    """Limit the session's lock waits."""
    session.execute(statement("set_upgrade_limits"), {"milliseconds": str(milliseconds)})


def build_indexes(commands: Mapping[str, str]) -> None:
    """Build missing or invalid indexes, passed as CREATE INDEX CONCURRENTLY by name.

    Earlier statements of the migration are committed first, so they must be repeatable. A first installation is one
    transaction with empty tables; there indexes are built without CONCURRENTLY.
    """
    from alembic import op

    if not _is_live():
        for command in commands.values():
            op.execute(command.replace(" CONCURRENTLY", ""))
        return
    with op.get_context().autocommit_block():
        connection = backend_of(op.get_bind())
        before = connection.execute("SELECT current_setting('lock_timeout')").fetchall()[0][0]
        # No session queues behind this, so it may wait.
        patience = int(op.get_context().opts["patience_seconds"] * 1000)
        connection.execute(statement("limit_lock_wait"), {"milliseconds": str(max(patience, 1))})
        try:
            for name, command in commands.items():
                found = connection.execute(statement("find_index"), {"name": name}).fetchone()
                if found is not None and not found[1]:
                    index = sql.Identifier(str(found[0]), name)
                    connection.execute(statement("drop_index", index=index))
                if found is None or not found[1]:
                    connection.execute(command.encode())
        finally:
            connection.execute(statement("limit_lock_wait"), {"milliseconds": before})


def commit_so_far() -> None:
    """Commit the migration so far and release its locks; the migration must be able to start again after this point."""
    from alembic import op

    with op.get_context().autocommit_block() if _is_live() else nullcontext():
        pass


def validate_constraints(engine: Engine, patience_seconds: float) -> None:
    """Validate constraints that were added NOT VALID; waits only for VACUUM and schema changes."""
    with engine.connect(autocommit=True) as connection:
        inner = autocommitting(connection)
        unvalidated = inner.execute(statement("list_unvalidated")).fetchall()
        if not unvalidated:
            return
        set_upgrade_limits(inner, max(int(patience_seconds * 1000), 1))
        try:
            for schema, table, name in unvalidated:
                place, constraint = sql.Identifier(str(schema), str(table)), sql.Identifier(str(name))
                inner.execute(statement("validate_constraint", table=place, constraint=constraint))
        finally:
            connection.invalidate()


def list_blockers(connection: Connection, waited_seconds: float) -> list[str]:
    """Return the sessions that block an upgrade which has waited so long."""
    parameters = {"waited": f"{waited_seconds} seconds"}
    return [str(row[0]) for row in connection.execute(statement("list_upgrade_blockers"), parameters)]


def find_upgrader(connection: Connection) -> str:
    """Return the session that holds the upgrade lock."""
    found = connection.execute(statement("find_upgrader"), {"kind": Lock.UPGRADE.value}).fetchone()
    return str(found[0]) if found else "a session that has ended"


def _is_live() -> bool:
    from alembic import op

    return bool(op.get_context().opts["transaction_per_migration"])
