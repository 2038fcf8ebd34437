"""What migrations do with tables that are in use, so that their readers and writers go on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from alembic import op
from psycopg import sql
from sqlalchemy import Connection, Engine

from nearsim_db.store.driver.engine import autocommitting, driver
from nearsim_db.store.driver.locks import Lock
from nearsim_db.store.driver.statements import statement


@contextmanager
def own_session(engine: Engine, **options: Any) -> Iterator[Connection]:
    """A connection that ends with the block, and with it what was set in its session."""
    with engine.connect().execution_options(**options) as connection:
        try:
            yield connection
        finally:
            connection.invalidate()


def limit_upgrade(connection: Connection, milliseconds: int) -> None:
    """In this session a lock is waited for only so long."""
    parameters = {"milliseconds": str(milliseconds)}
    driver(connection).execute(statement("set_upgrade_limits"), parameters)


def build_indexes(commands: Mapping[str, str]) -> None:
    """Build indexes, given by name as CREATE INDEX CONCURRENTLY, unless they are there.

    What the migration did before is committed first, so it has to be done in a way that can be repeated. Where all is
    installed in one transaction the tables are empty, and indexes are built without CONCURRENTLY.
    """
    if not _is_live():
        for command in commands.values():
            op.execute(command.replace(" CONCURRENTLY", ""))
        return
    with op.get_context().autocommit_block():
        connection = autocommitting(op.get_bind())
        before = connection.execute("SELECT current_setting('lock_timeout')").fetchall()[0][0]
        # Nobody waits behind this, so it may wait itself.
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
    """Commit what the migration did until here, and give its locks back; it has to be able to begin after this, too."""
    with op.get_context().autocommit_block() if _is_live() else nullcontext():
        pass


def validate_constraints(engine: Engine, patience_seconds: float) -> None:
    """Check old rows against the constraints that were added NOT VALID; nobody but a VACUUM is waited for."""
    with own_session(engine, isolation_level="AUTOCOMMIT") as connection:
        inner = autocommitting(connection)
        limit_upgrade(connection, max(int(patience_seconds * 1000), 1))
        for schema, table, name in inner.execute(statement("list_unvalidated")).fetchall():
            place, constraint = sql.Identifier(str(schema), str(table)), sql.Identifier(str(name))
            inner.execute(statement("validate_constraint", table=place, constraint=constraint))


def count_unvalidated(connection: Connection) -> int:
    """How many constraints were added and not yet checked on old rows."""
    return len(driver(connection).execute(statement("list_unvalidated")).fetchall())


def read_waited_for(connection: Connection, waited_seconds: float) -> list[str]:
    """The sessions whose transactions stand in the way of one that has waited so long."""
    parameters = {"waited": f"{waited_seconds} seconds"}
    return [str(row[0]) for row in driver(connection).execute(statement("list_upgrade_blockers"), parameters)]


def read_upgrader(connection: Connection) -> str:
    """The session that changes the schema right now."""
    found = driver(connection).execute(statement("find_upgrader"), {"kind": Lock.UPGRADE.value}).fetchone()
    return str(found[0]) if found else "nobody any more"


def _is_live() -> bool:
    return bool(op.get_context().opts["transaction_per_migration"])
