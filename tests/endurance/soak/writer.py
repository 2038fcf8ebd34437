"""A client that writes documents in random transactions until it is killed."""

import random
from itertools import count

import psycopg
from psycopg import sql
from tenacity import Retrying, retry_if_exception_type, wait_fixed

from tests.endurance.soak.journal import Connection, Effect, write_journal
from tests.endurance.soak.statements import Statements

# What two writers may do to each other, which applications have to handle.
_CONFLICTS = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.SerializationFailure,
    psycopg.errors.NoDataFound,
    psycopg.errors.InvalidParameterValue,  # one of two documents was moved to another collection
    # Another session has decided a prepared transaction, or is doing so.
    psycopg.errors.UndefinedObject,
    psycopg.errors.ObjectNotInPrerequisiteState,
)
_RECONNECT_SECONDS = 0.05


class Writer:
    """One connection's transactions."""

    def __init__(self, connection: Connection, collections: list[int], seed: str) -> None:
        self._connection, self._rng = connection, random.Random(seed)
        self._statements = Statements(connection, collections, self._rng)
        self._names = (f"soak {connection.info.backend_pid} {seed} {number}" for number in count())

    def write_transaction(self) -> None:
        """Commit, prepare or roll back a few statements; a conflict rolls back too."""
        kinds: list[str] = []
        effects: list[Effect] = []
        is_serializable, is_two_phase = self._rng.random() < 0.2, self._rng.random() < 0.08
        try:
            self._connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE" if is_serializable else "BEGIN")
            for _ in range(self._rng.choice([1, 1, 1, 2, 3, 5])):
                self._write_statement(kinds, effects)
            kinds += ["SERIALIZABLE transaction"] * is_serializable + ["PREPARE TRANSACTION"] * is_two_phase
            write_journal(self._connection, kinds, effects)
            if is_two_phase:
                self._prepare()
            else:
                self._connection.execute("ROLLBACK" if self._rng.random() < 0.05 else "COMMIT")
        except _CONFLICTS:
            self._connection.execute("ROLLBACK")

    def _prepare(self) -> None:
        """Prepare the transaction; commit it, roll it back, or leave that to another session."""
        name = sql.Literal(next(self._names))
        self._connection.execute(sql.SQL("PREPARE TRANSACTION {}").format(name))
        decision = self._rng.choice(
            ["COMMIT PREPARED {}", "COMMIT PREPARED {}", "ROLLBACK PREPARED {}", None]
        )
        if decision:
            self._connection.execute(sql.SQL(decision).format(name))

    def _write_statement(self, kinds: list[str], effects: list[Effect]) -> None:
        kind = self._statements.draw()
        if self._rng.random() > 0.15:
            effects += self._statements.run(kind)
            kinds.append(kind)
            return
        self._connection.execute("SAVEPOINT soak")
        try:
            written = self._statements.run(kind)
            is_kept = self._rng.random() < 0.5
        except psycopg.errors.UniqueViolation:
            is_kept = False
        if is_kept:
            self._connection.execute("RELEASE SAVEPOINT soak")
            effects += written
            kinds += [kind, "SAVEPOINT"]
        else:
            self._connection.execute("ROLLBACK TO SAVEPOINT soak")
            kinds.append("ROLLBACK TO SAVEPOINT")


def run_writer(url: str, collections: list[int], seed: str) -> None:
    """Write until killed; reconnect to a lost server."""
    lost = retry_if_exception_type((psycopg.OperationalError, psycopg.InterfaceError))
    for attempt in Retrying(retry=lost, wait=wait_fixed(_RECONNECT_SECONDS)):
        own = f"{seed} {attempt.retry_state.attempt_number}"
        with attempt, psycopg.connect(url, autocommit=True, application_name="soak writer") as connection:
            connection.execute("SET lock_timeout = '300ms'")
            writer = Writer(connection, collections, own)
            while True:
                writer.write_transaction()
