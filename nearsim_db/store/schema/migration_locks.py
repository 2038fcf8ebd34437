"""Migrations of tables in use: short lock waits, concurrent builds of indexes, and late validation of constraints."""

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
    """Return the psycopg connection below a connection of SQLAlchemy."""
    backend = connection.connection.driver_connection
    assert isinstance(backend, psycopg.Connection)
    return backend


def set_upgrade_limits(session: Backend, milliseconds: int) -> None:
    """Limit how long the session waits for a lock."""
    session.execute(statement("set_upgrade_limits"), {"milliseconds": str(milliseconds)})


def build_indexes(commands: Mapping[str, str]) -> None:
    """Build missing or invalid indexes; `commands` has a CREATE INDEX CONCURRENTLY for each name of an index.

    Earlier statements of the migration are committed first, so they must be repeatable. A first installation is one
    transaction with empty tables; there, indexes are built without CONCURRENTLY.
    """
    from alembic import op

    if not _is_live():
        for command in commands.values():
            op.execute(command.replace(" CONCURRENTLY", ""))
        return

    with op.get_context().autocommit_block():
        connection = backend_of(op.get_bind())
        former_limit = connection.execute("SELECT current_setting('lock_timeout')").fetchall()[0][0]
        # No other session queues behind CREATE INDEX CONCURRENTLY, so it may wait for a long time.
        patience = int(op.get_context().opts["patience_seconds"] * 1000)
        connection.execute(statement("limit_lock_wait"), {"milliseconds": str(max(patience, 1))})
        try:
            for name, command in commands.items():
                # An interrupted build leaves an invalid index behind.
                row = connection.execute(statement("find_index"), {"name": name}).fetchone()
                if row is not None and not row[1]:
                    index = sql.Identifier(str(row[0]), name)
                    connection.execute(statement("drop_index", index=index))
                if row is None or not row[1]:
                    connection.execute(command.encode())
        finally:
            connection.execute(statement("limit_lock_wait"), {"milliseconds": former_limit})


def commit_so_far() -> None:
    """Commit what the migration has done so far, and release its locks; it must be repeatable from this state."""
    from alembic import op

    with op.get_context().autocommit_block() if _is_live() else nullcontext():
        pass


def validate_constraints(engine: Engine, patience_seconds: float) -> None:
    """Validate constraints that were added NOT VALID; this waits only for VACUUM and for changes of the schema."""
    with engine.connect(autocommit=True) as connection:
        backend = autocommitting(connection)
        unvalidated = backend.execute(statement("list_unvalidated")).fetchall()
        if not unvalidated:
            return

        set_upgrade_limits(backend, max(int(patience_seconds * 1000), 1))
        try:
            for schema, table, name in unvalidated:
                parts = {
                    "table": sql.Identifier(str(schema), str(table)),
                    "constraint": sql.Identifier(str(name)),
                }
                backend.execute(statement("validate_constraint", None, **parts))
        finally:
            # The limits of this session were changed, so it must not be reused.
            connection.invalidate()


def list_blockers(connection: Connection, waited_seconds: float) -> list[str]:
    """Return a description of each session that blocks an upgrade, which has waited for `waited_seconds`."""
    parameters = {"waited": f"{waited_seconds} seconds"}
    return [str(row[0]) for row in connection.execute(statement("list_upgrade_blockers"), parameters)]


def find_upgrader(connection: Connection) -> str:
    """Return a description of the session that has the upgrade lock."""
    row = connection.execute(statement("find_upgrader"), {"kind": Lock.UPGRADE.value}).fetchone()
    return str(row[0]) if row else "a session that has ended"


def _is_live() -> bool:
    """Whether the migration changes tables that are in use, which is not so in a first installation or a downgrade."""
    from alembic import op

    return bool(op.get_context().opts["transaction_per_migration"])
