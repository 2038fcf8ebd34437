"""Alembic environment: online migrations only; the version table is in the schema `nearsim`."""

from alembic import context
from sqlalchemy import Connection

from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import SCHEMA
from nearsim_db.store.schema import alembic_runs, baseline, migration_locks, revisions
from nearsim_db.store.schema.baseline import refuse_untrusted

# How long a revision waits for each of its locks, while other sessions queue behind it. `nearsim schema init` retries a
# revision that does not get its locks; the command `alembic` makes one attempt.
_WAIT_MILLISECONDS = 400
_PATIENCE_SECONDS = 60.0


def run(connection: Connection, *, transaction_per_migration: bool, patience_seconds: float) -> None:
    """Run the migrations on this connection, each in its own transaction or all of them in the current transaction."""
    context.configure(
        connection=connection,
        target_metadata=None,
        version_table_schema=SCHEMA,
        transaction_per_migration=transaction_per_migration,
        patience_seconds=patience_seconds,
        baseline_digest=baseline.compute_digest(baseline.migrations_directory()),
    )
    with context.begin_transaction():
        context.run_migrations()


def run_command(url: str) -> None:
    """Run the command `alembic` under the upgrade lock, with short lock waits."""
    engine = open_engine(url)
    with revisions.upgrade_lock(engine, _PATIENCE_SECONDS):
        with engine.begin() as connection:
            refuse_untrusted(connection)
            baseline.ensure_namespace(connection)
            revisions.refuse_development_version(connection)
        with alembic_runs.separate_session(engine) as connection:
            alembic_runs.limit_waits(connection, _WAIT_MILLISECONDS)
            run(connection, transaction_per_migration=True, patience_seconds=_PATIENCE_SECONDS)
        migration_locks.validate_constraints(engine, _PATIENCE_SECONDS)
    engine.dispose()


attributes = context.config.attributes
if attributes.get("connection") is not None:
    run(
        attributes["connection"],
        transaction_per_migration=attributes.get("transaction_per_migration", False),
        patience_seconds=attributes.get("patience_seconds", 0.0),
    )
else:
    from nearsim_db.store.settings import database_url

    run_command(database_url())
