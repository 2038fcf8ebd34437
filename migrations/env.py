"""Alembic's way in: online migrations of the schema `nearsim`, whose version table lives there too."""

from alembic import context
from sqlalchemy import Connection

from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.schema import baseline, migration_locks, revisions, tables

# `nearsim db init` tries again what did not get its locks; here one attempt is made. Others may have to wait as long.
_WAIT_MILLISECONDS = 400
_PATIENCE_SECONDS = 60.0


def run(connection: Connection, *, apart: bool, patience_seconds: float) -> None:
    """Run the migrations asked for on this connection, each in a transaction of its own or all in the one at hand."""
    context.configure(
        connection=connection,
        target_metadata=tables.metadata,
        version_table_schema=tables.SCHEMA,
        include_schemas=True,
        include_name=tables.is_ours,
        transaction_per_migration=apart,
        patience_seconds=patience_seconds,
        baseline_digest=baseline.compute_digest(baseline.migrations_directory()),
    )
    with context.begin_transaction():
        context.run_migrations()


def run_alone(url: str) -> None:
    """What the command `alembic` does: as the only one, and without keeping others waiting."""
    engine = open_engine(url)
    with revisions.alone(engine, _PATIENCE_SECONDS):
        with engine.begin() as connection:
            revisions.ensure_namespace(connection)
        with migration_locks.own_session(engine) as connection:
            migration_locks.limit_upgrade(connection, _WAIT_MILLISECONDS)
            connection.commit()
            run(connection, apart=True, patience_seconds=_PATIENCE_SECONDS)
        migration_locks.validate_constraints(engine, _PATIENCE_SECONDS)
    engine.dispose()


given = context.config.attributes
if given.get("connection") is not None:
    run(
        given["connection"],
        apart=given.get("apart", False),
        patience_seconds=given.get("patience_seconds", 0.0),
    )
else:
    from nearsim_db.store.url import database_url

    run_alone(database_url())
