"""The schema's versions: bring it up to date, or say why it cannot be used."""

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
from nearsim_db.store.driver.engine import check_server, is_in_the_way
from nearsim_db.store.driver.locks import Lock, give_lock_back, take_lock
from nearsim_db.store.schema import baseline, migration_locks
from nearsim_db.store.schema.tables import SCHEMA

PATIENCE_SECONDS = 300.0

# How long applications may have to wait behind a migration that waits, before they go on for as long. That is less than
# the second after which the server looks for deadlocks: none of them is ended for the sake of the migration.
_WAITS_MILLISECONDS = 100, 100, 200, 200, 400
_PAUSE_SECONDS = 0.2, 0.5

Told = Callable[[str], None]


def ensure_namespace(connection: Connection) -> None:
    """Make the schema itself, which holds Alembic's version table, if it is not there."""
    if connection.scalar(text("SELECT to_regnamespace(:name)"), {"name": SCHEMA}) is None:
        connection.execute(text("CREATE SCHEMA nearsim"))


def upgrade(
    engine: Engine,
    revision: str = "head",
    patience_seconds: float = PATIENCE_SECONDS,
    told: Told = lambda message: None,
) -> str:
    """Bring the schema to a revision, each step in a transaction of its own; returns the revision it then has.

    Whoever uses the schema goes on meanwhile. A step that does not get its locks within `patience_seconds` leaves the
    schema at the revision before it and raises SchemaError; called again, after a kill too, it goes on from there.
    """
    with engine.connect() as connection:
        check_server(connection)
        if _is_done(connection):
            return current_revision(connection) or ""
    with alone(engine, patience_seconds, _without_repeats(told)):
        with engine.begin() as connection:
            found = current_revision(connection)
            if found is not None:
                _refuse_development_version(connection, found)
            is_newer = found is not None and _is_newer(connection, found)
            if found is None:
                ensure_namespace(connection)
                command.upgrade(_config(connection), revision)
        if found is not None and not is_newer:
            for script in reversed(
                list(_scripts(baseline.migrations_directory()).iterate_revisions(revision, found))
            ):
                _apply(engine, script.revision, patience_seconds, _without_repeats(told))
        migration_locks.validate_constraints(engine, patience_seconds)
        with engine.connect() as connection:
            return current_revision(connection) or ""


def downgrade(connection: Connection, revision: str) -> None:
    """Take the schema back to a revision (`base` drops everything), in the caller's transaction."""
    command.downgrade(_config(connection), revision)


def check(connection: Connection) -> str:
    """The revision of the schema. Raises SchemaError unless this code may work with it."""
    found = current_revision(connection)
    if found is None:
        raise SchemaError("the database has no nearsim schema yet; run: nearsim db init")
    _refuse_development_version(connection, found)
    if not _is_newer(connection, found) and found != newest_revision():
        raise SchemaError(
            f"the schema is at revision {found}, this version of nearsim needs {newest_revision()}; "
            "run: nearsim db init"
        )
    return found


def current_revision(connection: Connection) -> str | None:
    """The revision the database is at, None when nearsim was never installed there."""
    context = MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA})
    return context.get_current_revision()


def newest_revision() -> str:
    """The revision this code was written for."""
    head = _scripts(baseline.migrations_directory()).get_current_head()
    assert head is not None
    return head


def oldest_revision(connection: Connection) -> str:
    """The revision that code must know to work with a schema that is newer."""
    return str(connection.scalar(text("SELECT oldest_revision FROM nearsim.schema_floor")))


@contextmanager
def alone(engine: Engine, patience_seconds: float, told: Told = lambda message: None) -> Iterator[None]:
    """Be the only one to change the schema, after the one before. Raises SchemaError if that one takes too long."""
    # An index that is built waits for everybody who waits in a statement, so it is asked for again and again.
    attempts = Retrying(
        retry=retry_if_result(lambda taken: not taken),
        stop=stop_after_delay(patience_seconds),
        wait=wait_random(*_PAUSE_SECONDS),
        before_sleep=lambda state: told(
            f"waiting for another upgrade by {migration_locks.read_upgrader(connection)}"
        ),
    )
    autocommit = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    with autocommit as connection:
        try:
            attempts(take_lock, connection, Lock.UPGRADE, 0, wait=False)
        except RetryError as error:
            raise SchemaError(
                f"the schema is being upgraded by {migration_locks.read_upgrader(connection)}; "
                "run the same command again when that is done"
            ) from error
        try:
            yield
        finally:
            give_lock_back(connection, Lock.UPGRADE, 0)


def _apply(engine: Engine, revision: str, patience_seconds: float, told: Told) -> None:
    """Take one step, again and again until it gets its locks."""
    told(f"applying revision {revision}")

    def wait_for(state: RetryCallState) -> None:
        told(f"revision {revision} waits for {_in_the_way(engine)}")

    attempts = Retrying(
        retry=retry_if_exception(is_in_the_way),
        stop=stop_after_delay(patience_seconds),
        wait=wait_random(*_PAUSE_SECONDS),
        before_sleep=wait_for,
    )
    waits = chain(_WAITS_MILLISECONDS, repeat(_WAITS_MILLISECONDS[-1]))
    try:
        attempts(lambda: _step(engine, revision, next(waits), patience_seconds))
    except RetryError as error:
        raise SchemaError(
            f"the schema stays as it was before revision {revision}, which waited {patience_seconds:g} s for "
            f"{_in_the_way(engine)}; end that, and run the same command again: it goes on from there"
        ) from error


def _step(engine: Engine, revision: str, milliseconds: int, patience_seconds: float) -> None:
    with migration_locks.own_session(engine) as connection:
        migration_locks.limit_upgrade(connection, milliseconds)
        connection.commit()
        config = _config(connection)
        config.attributes |= {"apart": True, "patience_seconds": patience_seconds}
        command.upgrade(config, revision)


def _in_the_way(engine: Engine) -> str:
    with engine.connect() as connection:
        return (
            ", ".join(migration_locks.read_waited_for(connection, _WAITS_MILLISECONDS[0] / 1000))
            or "nobody any more"
        )


def _is_done(connection: Connection) -> bool:
    found = current_revision(connection)
    if found is None:
        return False
    _refuse_development_version(connection, found)
    if _is_newer(connection, found):
        return True
    return found == newest_revision() and not migration_locks.count_unvalidated(connection)


def _refuse_development_version(connection: Connection, found: str) -> None:
    """Raise SchemaError unless the schema was made from the baseline that this code ships."""
    if baseline.read_digest(connection) != baseline.compute_digest(baseline.migrations_directory()):
        raise SchemaError(
            f"the schema (revision {found}) was made by a development version of nearsim and cannot be upgraded; "
            "export your documents, drop the schemas nearsim and nearsim_index, and run: nearsim db init"
        )


def _is_newer(connection: Connection, found: str) -> bool:
    """Whether the schema is newer than this code, and still fit for it. Raises SchemaError if it is not fit."""
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


def _without_repeats(told: Told) -> Told:
    last = ""

    def tell(message: str) -> None:
        nonlocal last
        if message != last:
            told(message)
        last = message

    return tell


@cache
def _scripts(migrations: Path) -> ScriptDirectory:
    return ScriptDirectory(str(migrations))


def _config(connection: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(baseline.migrations_directory()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
