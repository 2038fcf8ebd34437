"""Advisory locks of sessions and transactions on a collection, a generation or the whole database.

All end with their connection, so that no killed process ever holds one.
"""

from enum import Enum

from nearsim_db.store.driver.connection import Connection
from nearsim_db.store.driver.statements import run


class Lock(Enum):
    """Kinds of locks: the value is the first key of the advisory lock ("ns" and up), an id the second."""

    BUILD = 0x6E73  # of a collection: creates its profiles and builds their first generations
    WORKER_LEASE = 0x6E75  # of a worker's lease: its session is connected
    DISPATCH = 0x6E76  # of the database (id 0): shared by dispatchers
    CHANGES = 0x6E7A  # of the database (id 0): takes captured changes without locking them first
    STORE = 0x6E77  # of a generation: shared to add heads, exclusive to remove heads
    LINK = 0x6E78  # of a generation: changes its clusters
    ATTACHED_UPDATE = 0x6E7B  # of a collection: updates its documents from the attached table
    SWEEP = 0x6E7C  # of a collection: sweeps the attached table
    VERDICT = 0x6E7D  # of a pair (a hash of its doc_ids): sets or undoes its verdict, in nearsim.undo_current_verdicts
    REINDEX = 0x6E7E  # of a generation: builds it beside the live one
    DROP = 0x6E7F  # of the database (id 0): detaches partitions
    UPGRADE = 0x6E80  # of the database (id 0): changes the schema
    PUBLISH_OR_PROMOTE = (
        0x6E81  # of a generation: shared to write events or skip them, exclusive to promote or retire it
    )
    EVENT = 0x6E79  # of the database: (id 0) commits events (nearsim.publish_events), taken last; (id 1) prunes them


def take_lock(connection: Connection, kind: Lock, id: int, *, wait: bool = True) -> bool:
    """Take a lock for the session; without `wait` return False if another session holds it."""
    name = "lock_session" if wait else "try_lock_session"
    taken = run(connection, name, kind=kind.value, id=id).value()
    return wait or bool(taken)


def release_lock(connection: Connection, kind: Lock, id: int) -> None:
    """Release a session's lock."""
    run(connection, "unlock_session", kind=kind.value, id=id)


def take_transaction_lock(
    connection: Connection, kind: Lock, id: int, *, shared: bool = False, idle_minutes: int = 1
) -> None:
    """Take a lock until the transaction, or the savepoint it is taken under, ends.

    The server ends a process that is idle in such a transaction for so long, so that it cannot block all others.
    """
    name = "lock_shared" if shared else "lock_exclusively"
    run(connection, name, kind=kind.value, id=id, idle=f"{idle_minutes}min")


def try_transaction_lock(connection: Connection, kind: Lock, id: int) -> bool:
    """Take a lock until the transaction ends; return False if another session holds it."""
    return bool(run(connection, "try_lock", kind=kind.value, id=id).value())


def is_lock_taken(connection: Connection, kind: Lock, id: int) -> bool:
    """Whether any session holds a lock now, or may hold it on the primary of a standby; neither takes nor awaits it."""
    return run(connection, "find_lock", kind=kind.value, id=id).value() is not None
