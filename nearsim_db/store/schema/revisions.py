"""Revisions of the schema: upgrades, downgrades, and the check whether this code may work with the schema."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING

from nearsim_db.errors import SchemaError
from nearsim_db.store.citus import placement
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.driver_errors import is_lock_conflict
from nearsim_db.store.driver.engine import check_server
from nearsim_db.store.driver.locks import Lock, release_lock, take_lock
from nearsim_db.store.driver.statements import run
from nearsim_db.store.schema import baseline, migration_locks
from nearsim_db.store.schema.baseline import refuse_untrusted

if TYPE_CHECKING:
    from tenacity import RetryCallState

PATIENCE_SECONDS = 300.0

# While a migration waits for a lock, applications queue behind it; in the pauses they run undisturbed. The waits are
# shorter than deadlock_timeout (1 s), so that the server never cancels an application in favour of a migration.
_LOCK_WAITS_MILLISECONDS = 100, 100, 200, 200, 400
_PAUSE_SECONDS = 0.2, 0.5

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The state of the schema in a database."""

    revision: str
    digest: str | None  # digest of the files from which its baseline was made
    oldest_revision: str  # code of this revision or a later one may use the schema
    has_unvalidated: bool  # whether it has constraints that are not validated yet
    is_distributed: (
        bool  # whether band rows are on the nodes of a Citus cluster, or were in a dump that was restored
    )


def upgrade(
    engine: Engine,
    revision: str = "head",
    patience_seconds: float = PATIENCE_SECONDS,
    report: Report = lambda message: None,
) -> str:
    """Create the schema, or upgrade it to a revision; return the revision of the schema.

    Each revision is applied in its own transaction, and the schema remains usable meanwhile. If a revision does not get
    its locks within `patience_seconds`, the schema remains at the previous revision and SchemaError is raised. The next
    call continues from there, also if this call is killed.
    """
    with engine.connect() as connection:
        check_server(connection)
        refuse_untrusted(connection)
        state = read_state(connection)
    if state is not None and is_done(state):
        return state.revision

    with upgrade_lock(engine, patience_seconds, _without_repeats(report)):
        state = _install(engine)
        if not _is_newer(state):
            for number in _known_revisions():
                if state.revision < number and (revision == "head" or number <= revision):
                    _apply(engine, number, patience_seconds, _without_repeats(report))
        migration_locks.validate_constraints(engine, patience_seconds)
        with engine.connect() as connection:
            return current_revision(connection) or ""


def _install(engine: Engine) -> SchemaState:
    """Create the schema unless it exists; return its state."""
    with engine.begin() as connection:
        refuse_untrusted(connection)
        state = read_state(connection)
        if state is None:
            baseline.install(connection)
            # If somebody has created an object in the schemas meanwhile, this raises, and everything is rolled back.
            refuse_untrusted(connection)
            state = read_state(connection)
        assert state is not None
        _refuse_development_version(state)
        return state


def downgrade(engine: Engine, revision: str) -> None:
    """Downgrade the schema to a revision (`base` drops everything)."""
    from nearsim_db.store.schema import alembic_runs

    with engine.connect() as connection:
        refuse_untrusted(connection)
    alembic_runs.downgrade(engine, revision)


def check(connection: Connection) -> str:
    """Return the revision of the schema. Raises SchemaError unless this code may work with it."""
    state = read_state(connection)
    if state is None:
        raise SchemaError("the database has no nearsim schema yet; run: nearsim schema init")
    if not is_compatible(state):
        raise SchemaError(
            f"the schema is at revision {state.revision}, but this version of nearsim needs {newest_revision()}; "
            "run: nearsim schema init"
        )
    if is_misplaced(connection, state):
        raise SchemaError(
            "the database was restored from a dump of a Citus cluster, and its band rows have not been placed yet; "
            "as its owner run: nearsim schema init"
        )
    return state.revision


def is_misplaced(connection: Connection, state: SchemaState) -> bool:
    """Whether the dump of a cluster's database was restored, so that band rows are here but belong on nodes."""
    return state.is_distributed and not placement.has_shards(connection)


def is_compatible(state: SchemaState) -> bool:
    """Whether this code may work with the schema; False if the schema must be upgraded.

    Raises SchemaError if it cannot be upgraded.
    """
    _refuse_development_version(state)
    return _is_newer(state) or state.revision == newest_revision()


def is_done(state: SchemaState) -> bool:
    """Whether there is nothing to upgrade. Raises SchemaError if the schema cannot be upgraded."""
    return is_compatible(state) and (_is_newer(state) or not state.has_unvalidated)


def refuse_development_version(connection: Connection) -> None:
    """Raise SchemaError if the schema was made from another baseline than the one in this package."""
    state = read_state(connection)
    if state is not None:
        _refuse_development_version(state)


def _refuse_development_version(state: SchemaState) -> None:
    if state.digest != baseline.compute_digest(baseline.migrations_directory()):
        raise SchemaError(
            f"the schema (revision {state.revision}) was made by a development version of nearsim and cannot be "
            "upgraded; export your documents, drop the schemas nearsim and nearsim_index, and run: nearsim schema init"
        )


def read_state(connection: Connection) -> SchemaState | None:
    """Return the state of the schema; None if nearsim is not installed.

    Raises SchemaError if the user is a superuser and the schema has objects of a role that is not trusted.
    """
    refuse_untrusted(connection, superusers_only=True)
    has_versions, has_floor = run(connection, "find_version_table").row()
    if not has_versions:
        return None
    if has_floor:
        return run(connection, "read_schema_state").first(SchemaState)
    revision = run(connection, "read_revision").value()
    return None if revision is None else SchemaState(revision, None, revision, False, False)


def current_revision(connection: Connection) -> str | None:
    """Return the revision of the schema; None if nearsim is not installed. Raises the same errors as `read_state`."""
    refuse_untrusted(connection, superusers_only=True)
    has_versions, _ = run(connection, "find_version_table").row()
    return run(connection, "read_revision").value() if has_versions else None


@cache
def _revisions_in(migrations: Path) -> tuple[str, ...]:
    names = (path.name for path in (migrations / "versions").iterdir())
    return tuple(sorted(name[:4] for name in names if re.fullmatch(r"\d{4}_\w+\.py", name)))


def _known_revisions() -> tuple[str, ...]:
    """Return the revisions in this package, in order."""
    return _revisions_in(baseline.migrations_directory())


def newest_revision() -> str:
    """Return the revision for which this code was written."""
    return _known_revisions()[-1]


def oldest_revision(connection: Connection) -> str:
    """Return the oldest revision whose code may work with this schema."""
    state = read_state(connection)
    assert state is not None
    return state.oldest_revision


@contextmanager
def upgrade_lock(
    engine: Engine, patience_seconds: float, report: Report = lambda message: None
) -> Iterator[None]:
    """Take the upgrade lock of the database for the block. Raises SchemaError if it is not free in time."""
    from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_random

    # The lock is polled: CREATE INDEX CONCURRENTLY in the other upgrade would wait for a session that waits in a
    # statement.
    attempts = Retrying(
        retry=retry_if_result(lambda taken: not taken),
        stop=stop_after_delay(patience_seconds),
        wait=wait_random(*_PAUSE_SECONDS),
        before_sleep=lambda state: report(
            f"waiting for another upgrade by {migration_locks.find_upgrader(connection)}"
        ),
    )
    with engine.connect(autocommit=True) as connection:
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
    """Apply a revision, and retry until it gets its locks."""
    from tenacity import RetryError, Retrying, retry_if_exception, stop_after_delay, wait_random

    from nearsim_db.store.schema import alembic_runs

    report(f"applying revision {revision}")

    def report_wait(state: "RetryCallState") -> None:
        report(f"revision {revision} waits for {_list_blockers(engine)}")

    def attempt() -> None:
        with engine.connect() as connection:
            refuse_untrusted(connection)
        alembic_runs.upgrade(engine, revision, next(waits), patience_seconds)

    attempts = Retrying(
        retry=retry_if_exception(is_lock_conflict),
        stop=stop_after_delay(patience_seconds),
        wait=wait_random(*_PAUSE_SECONDS),
        before_sleep=report_wait,
    )
    waits = chain(_LOCK_WAITS_MILLISECONDS, repeat(_LOCK_WAITS_MILLISECONDS[-1]))
    try:
        attempts(attempt)
    except RetryError as error:
        raise SchemaError(
            f"revision {revision} was not applied: it waited {patience_seconds:g} s for {_list_blockers(engine)}; "
            "end these sessions, then run the same command again to continue"
        ) from error


def _list_blockers(engine: Engine) -> str:
    with engine.connect() as connection:
        return (
            ", ".join(migration_locks.list_blockers(connection, _LOCK_WAITS_MILLISECONDS[0] / 1000))
            or "sessions that have ended"
        )


def _is_newer(state: SchemaState) -> bool:
    """Whether the schema is newer than this code, but compatible. Raises SchemaError if it is incompatible."""
    revision, newest = state.revision, newest_revision()
    if revision in _known_revisions():
        return False
    # Revisions are numbers of four digits, so they compare as texts.
    if revision > newest and state.oldest_revision <= newest:
        return True
    raise SchemaError(
        f"the schema is at revision {revision}, which this version of nearsim does not know (its newest is {newest}): "
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
