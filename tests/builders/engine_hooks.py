"""Hooks that a test puts into the sessions of an engine: at connecting, before a commit, at the end of transactions."""

from collections.abc import Callable

from psycopg.pq import TransactionStatus

from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.connection import Backend


def on_connect(engine: Engine, action: Callable[[Backend], object]) -> None:
    """Call an action with each new session."""
    connect = engine.open_session

    def opened() -> Backend:
        backend = connect()
        action(backend)
        return backend

    engine.open_session = opened


def before_commits(engine: Engine, action: Callable[[], object]) -> None:
    """Call an action before each commit of a transaction, in connections that are opened from here on."""

    class Hooked(Connection):
        def commit(self) -> None:
            if in_transaction(self):
                action()
            super().commit()

    engine.connection_type = Hooked


def count_transactions(engine: Engine) -> list[str]:
    """A list that grows by one with each transaction that ends."""
    ended: list[str] = []

    class Counted(Connection):
        def commit(self) -> None:
            # Outside a transaction, the list is multiplied by False, which makes it empty.
            ended.extend(["commit"] * in_transaction(self))
            super().commit()

        def rollback(self) -> None:
            ended.extend(["rollback"] * in_transaction(self))
            super().rollback()

        def close(self) -> None:
            ended.extend(["close"] * in_transaction(self))
            super().close()

    engine.connection_type = Counted
    return ended


def in_transaction(connection: Connection) -> bool:
    """Whether a transaction has begun."""
    return connection.backend.info.transaction_status != TransactionStatus.IDLE
