"""Advisory locks of sessions and transactions on a collection, a generation or the whole database.

The server releases the locks of a connection when it ends, so a killed process leaves no lock behind.
"""

from enum import Enum

from nearsim_db.store.driver.connection import Connection
from nearsim_db.store.driver.statements import run


class Lock(Enum):
    """Kinds of locks: the value is the first key of the advisory lock (0x6E73 is "ns"), an id is the second key.

    Each comment names the object whose id is locked, and then what the holder of the lock does. The id of the database
    is 0.
    """

    BUILD = 0x6E73  # collection: create its profiles and build their first generations
    WORKER_LEASE = 0x6E75  # lease of a worker: show that the worker is connected
    DISPATCH = 0x6E76  # database: shared by dispatchers of changes; exclusive to wait until they are done
    CHANGES = 0x6E7A  # database: take captured changes without locking their rows first
    STORE = 0x6E77  # generation: shared to add heads, exclusive to remove heads
    LINK = 0x6E78  # generation: change its clusters
    ATTACHED_UPDATE = 0x6E7B  # collection without a parent: update documents from the attached table
    SWEEP = 0x6E7C  # collection without a parent: sweep the attached table
    VERDICT = (
        0x6E7D  # pair (a hash of its doc_ids): set or undo its verdict, in nearsim.undo_current_verdicts
    )
    REINDEX = 0x6E7E  # generation: build it beside the live one
    DROP = 0x6E7F  # database: detach partitions
    UPGRADE = 0x6E80  # database: change the schema
    PUBLISH_OR_PROMOTE = (
        0x6E81  # generation: shared to publish events of it, exclusive to promote or retire it
    )
    EVENT = 0x6E79  # database: commit events (nearsim.publish_events), taken last; id 1: prune them


def take_lock(connection: Connection, kind: Lock, id: int, *, wait: bool = True) -> bool:
    """Take a lock for the session; if `wait` is False and another session has the lock, return False."""
    name = "lock_session" if wait else "try_lock_session"
    taken = run(connection, name, kind=kind.value, id=id).value()
    return wait or bool(taken)


def release_lock(connection: Connection, kind: Lock, id: int) -> None:
    """Release a session's lock."""
    run(connection, "unlock_session", kind=kind.value, id=id)


def take_transaction_lock(
    connection: Connection, kind: Lock, id: int, *, shared: bool = False, idle_minutes: int = 1
) -> None:
    """Take a lock until the transaction ends or is rolled back to an earlier savepoint.

    The server ends the session if it is idle in the transaction for `idle_minutes`, so that an idle session cannot
    block all others.
    """
    name = "lock_shared" if shared else "lock_exclusively"
    run(connection, name, kind=kind.value, id=id, idle=f"{idle_minutes}min")


def try_transaction_lock(connection: Connection, kind: Lock, id: int) -> bool:
    """Take a lock until the transaction ends; return False if another session has it."""
    return bool(run(connection, "try_lock", kind=kind.value, id=id).value())


def is_lock_taken(connection: Connection, kind: Lock, id: int) -> bool:
    """Whether any session has a lock now; always True on a standby, because a session of the primary may have it."""
    return run(connection, "find_lock", kind=kind.value, id=id).value() is not None
