"""Advisory locks: what a session or a transaction may hold of a collection, of a generation or of the whole database.

All go with their connection, so that no killed process ever holds one.
"""

from enum import Enum

from sqlalchemy import Connection, text

from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import statement


class Lock(Enum):
    """What may be held; the values are the first key of the advisory locks ("ns" and on), an id is the second."""

    BUILD = 0x6E73  # of a collection: one process makes its profiles and builds its first generations
    LEASE = 0x6E74  # of a temporary collection: somebody still needs it
    WORKER = 0x6E75  # of a lease: the session that works under it lives
    DISPATCH = 0x6E76  # of the database (id 0): shared by who turns changes into work
    STORE = 0x6E77  # of a generation: shared by who adds new heads, alone for who takes heads out
    LINK = 0x6E78  # of a generation: one changes its clusters
    FOLLOW = 0x6E7B  # of a collection: one makes its documents what the rows are that it follows
    SWEEP = 0x6E7C  # of a collection: one session sweeps the table that it follows
    JUDGE = 0x6E7D  # of a pair (a hash of its doc_ids): one decides about it, in nearsim.undo_current_verdict
    REINDEX = 0x6E7E  # of a generation: one process builds it beside the one that answers
    DROP = 0x6E7F  # of the database (id 0): one takes partitions out of their parents
    UPGRADE = 0x6E80  # of the database (id 0): one changes the schema
    TURN = 0x6E81  # of a generation: shared by who tells of it or need not, alone for who makes it live, or no longer
    EVENT = 0x6E79  # of the database: (id 0) one commits events (nearsim.publish_events), taken last; (id 1) one prunes


def take_lock(connection: Connection, kind: Lock, id: int, *, wait: bool = True) -> bool:
    """Take a lock for this session; False when somebody else has it and `wait` is not set."""
    command = "SELECT pg_advisory_lock(:kind, :id)" if wait else "SELECT pg_try_advisory_lock(:kind, :id)"
    taken = connection.execute(text(command), {"kind": kind.value, "id": id}).scalar_one()
    return wait or bool(taken)


def give_lock_back(connection: Connection, kind: Lock, id: int) -> None:
    """Give a session's lock back."""
    connection.execute(text("SELECT pg_advisory_unlock(:kind, :id)"), {"kind": kind.value, "id": id})


def hold_lock(connection: Connection, kind: Lock, id: int, *, shared: bool = False) -> None:
    """Take a lock until this transaction, or the savepoint it is taken under, ends.

    A process that freezes in such a transaction must not stop all others: the server ends it after a minute.
    """
    name = "lock_shared" if shared else "lock_exclusively"
    driver(connection).execute(statement(name), {"kind": kind.value, "id": id})


def try_lock(connection: Connection, kind: Lock, id: int) -> bool:
    """Take a lock until this transaction ends, unless somebody else has it; whether it was taken."""
    row = driver(connection).execute(statement("try_lock"), {"kind": kind.value, "id": id}).fetchone()
    return row is not None and bool(row[0])


def is_taken(connection: Connection, kind: Lock, id: int) -> bool:
    """Whether any session has a lock now; nobody who wants it is in the way of who asks, or finds it taken by him."""
    return bool(driver(connection).execute(statement("find_lock"), {"kind": kind.value, "id": id}).fetchone())
