"""Revisions of the schema: upgrade, downgrade, and check whether this code may work with it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain, repeat
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text
from tenacity import (
    RetryCallState,
    RetryError,
    Retrying,
    retry_if_exception,
    retry_if_result,
    stop_after_delay,
    wait_random,
)

from nearsim_db.errors import SchemaError
from nearsim_db.store.driver.engine import check_server, is_lock_conflict
from nearsim_db.store.driver.locks import Lock, release_lock, take_lock
from nearsim_db.store.schema import baseline, migration_locks
from nearsim_db.store.schema.tables import SCHEMA

PATIENCE_SECONDS = 300.0

# Lock waits of a migration, behind which applications queue; they then run undisturbed for a pause. Shorter than
# deadlock_timeout (1 s), so that the server never cancels an application in favour of a migration.
_WAITS_MILLISECONDS = 100, 100, 200, 200, 400
_PAUSE_SECONDS = 0.2, 0.5

Report = Callable[[str], None]


def ensure_namespace(connection: Connection) -> None:
    """Create the schema nearsim, which holds Alembic's version table, unless it exists."""
    if connection.scalar(text("SELECT to_regnamespace(:name)"), {"name": SCHEMA}) is None:
        connection.execute(text("CREATE SCHEMA nearsim"))


def upgrade(
    engine: Engine,
    revision: str = "head",
    patience_seconds: float = PATIENCE_SECONDS,
    report: Report = lambda message: None,
) -> str:
    """Upgrade the schema to a revision, one transaction per revision; returns the revision it then has.

    The schema stays in use meanwhile. If a revision does not get its locks within `patience_seconds`, the schema stays
    at the previous one and SchemaError is raised; the next call continues from there, also after a kill.
    """
    with engine.connect() as connection:
        check_server(connection)
        if _is_done(connection):
            return current_revision(connection) or ""
    with upgrade_lock(engine, patience_seconds, _without_repeats(report)):
        with engine.begin() as connection:
            refuse_development_version(connection)
            found = current_revision(connection)
            is_newer = found is not None and _is_newer(connection, found)
            if found is None:
                ensure_namespace(connection)
                command.upgrade(_config(connection), revision)
        if found is not None and not is_newer:
            for script in reversed(
                list(_scripts(baseline.migrations_directory()).iterate_revisions(revision, found))
            ):
                _apply(engine, script.revision, patience_seconds, _without_repeats(report))
        migration_locks.validate_constraints(engine, patience_seconds)
        with engine.connect() as connection:
            return current_revision(connection) or ""


def downgrade(connection: Connection, revision: str) -> None:
    """Downgrade the schema to a revision (`base` drops everything), in the caller's transaction."""
    command.downgrade(_config(connection), revision)


def check(connection: Connection) -> str:
    """Return the revision of the schema. Raises SchemaError unless this code may work with it."""
    found = current_revision(connection)
    if found is None:
        raise SchemaError("the database has no nearsim schema yet; run: nearsim db init")
    refuse_development_version(connection)
    if not _is_newer(connection, found) and found != newest_revision():
        raise SchemaError(
            f"the schema is at revision {found}, this version of nearsim needs {newest_revision()}; "
            "run: nearsim db init"
        )
    return found


def refuse_development_version(connection: Connection) -> None:
    """Raise SchemaError if the schema was made from another baseline than the one that this code ships."""
    found = current_revision(connection)
    if found is None:
        return
    if baseline.read_digest(connection) != baseline.compute_digest(baseline.migrations_directory()):
        raise SchemaError(
            f"the schema (revision {found}) was made by a development version of nearsim and cannot be upgraded; "
            "export your documents, drop the schemas nearsim and nearsim_index, and run: nearsim db init"
        )


def current_revision(connection: Connection) -> str | None:
    """Return the revision of the database; None if nearsim is not installed."""
    context = MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA})
    return context.get_current_revision()


def newest_revision() -> str:
    """Return the revision that this code was written for."""
    head = _scripts(baseline.migrations_directory()).get_current_head()
    assert head is not None
    return head


def oldest_revision(connection: Connection) -> str:
    """Return the oldest revision whose code may work with this schema."""
    return str(connection.scalar(text("SELECT oldest_revision FROM nearsim.schema_floor")))


@contextmanager
def upgrade_lock(
    engine: Engine, patience_seconds: float, report: Report = lambda message: None
) -> Iterator[None]:
    """Hold the upgrade lock of the database for the block. Raises SchemaError if it is not free in time."""
    # Polled, because CREATE INDEX CONCURRENTLY waits for every session that waits inside a statement.
    attempts = Retrying(
        retry=retry_if_result(lambda taken: not taken),
        stop=stop_after_delay(patience_seconds),
        wait=wait_random(*_PAUSE_SECONDS),
        before_sleep=lambda state: report(
            f"waiting for another upgrade by {migration_locks.find_upgrader(connection)}"
        ),
    )
    autocommit = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    with autocommit as connection:
        try:
            attempts(take_lock, connection, Lock.UPGRADE, 0, wait=False)
        except RetryError as error:
            raise SchemaError(
                f"the schema is being upgraded by {migration_locks.find_upgrader(connection)}; "
                "run the same command again when it is done"
            ) from error
        try:
            yield
        finally:
            release_lock(connection, Lock.UPGRADE, 0)


def _apply(engine: Engine, revision: str, patience_seconds: float, report: Report) -> None:
    """Apply one revision, with retries until it gets its locks."""
    report(f"applying revision {revision}")

    def report_wait(state: RetryCallState) -> None:
        report(f"revision {revision} waits for {_list_blockers(engine)}")

    attempts = Retrying(
        retry=retry_if_exception(is_lock_conflict),
        stop=stop_after_delay(patience_seconds),
        wait=wait_random(*_PAUSE_SECONDS),
        before_sleep=report_wait,
    )
    waits = chain(_WAITS_MILLISECONDS, repeat(_WAITS_MILLISECONDS[-1]))
    try:
        attempts(lambda: _attempt(engine, revision, next(waits), patience_seconds))
    except RetryError as error:
        raise SchemaError(
            f"revision {revision} was not applied: it waited {patience_seconds:g} s for {_list_blockers(engine)}; "
            "end these sessions, then run the same command again to continue"
        ) from error


def _attempt(engine: Engine, revision: str, milliseconds: int, patience_seconds: float) -> None:
    with migration_locks.separate_session(engine) as connection:
        migration_locks.set_upgrade_limits(connection, milliseconds)
        connection.commit()
        config = _config(connection)
        config.attributes |= {"transaction_per_migration": True, "patience_seconds": patience_seconds}
        command.upgrade(config, revision)


def _list_blockers(engine: Engine) -> str:
    with engine.connect() as connection:
        return (
            ", ".join(migration_locks.list_blockers(connection, _WAITS_MILLISECONDS[0] / 1000))
            or "sessions that have ended"
        )


def _is_done(connection: Connection) -> bool:
    found = current_revision(connection)
    if found is None:
        return False
    refuse_development_version(connection)
    if _is_newer(connection, found):
        return True
    return found == newest_revision() and not migration_locks.count_unvalidated(connection)


def _is_newer(connection: Connection, found: str) -> bool:
    """Whether the schema is newer than this code but compatible. Raises SchemaError if it is not compatible."""
    newest = newest_revision()
    if found in {script.revision for script in _scripts(baseline.migrations_directory()).walk_revisions()}:
        return False
    # Revisions are numbers of four digits.
    if found > newest and oldest_revision(connection) <= newest:
        return True
    raise SchemaError(
        f"the schema is at revision {found}, which this version of nearsim does not know (its newest is {newest}): "
        "it was upgraded by a newer nearsim; upgrade this one"
    )


def _without_repeats(report: Report) -> Report:
    last = ""

    def report_changes(message: str) -> None:
        nonlocal last
        if message != last:
            report(message)
        last = message

    return report_changes


@cache
def _scripts(migrations: Path) -> ScriptDirectory:
    return ScriptDirectory(str(migrations))


def _config(connection: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(baseline.migrations_directory()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
