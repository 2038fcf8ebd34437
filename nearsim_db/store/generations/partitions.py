"""Tables of all generations: which a new generation gets, those of deleted ones, planner statistics."""

from typing import Literal

import psycopg
from psycopg import sql

from nearsim_db.records import CollectionId
from nearsim_db.store.citus import placement
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.connection import autocommitting
from nearsim_db.store.driver.driver_errors import corruption_message
from nearsim_db.store.driver.statements import Leaves, run, statement

MOST_SHARED = 20_000  # documents of a collection whose index shares its tables

_ANALYZE_ONLY_SINCE = 18_00_00
# shared: shares all tables; own: has its own of signatures and bands
Tables = Literal["shared", "own"]
NUMBERS: dict[Tables, str] = {
    "shared": "nearsim.generation_generation_id_seq",
    "own": "nearsim.own_generation",
}


def choose_tables(connection: Connection, collection_id: CollectionId) -> Tables:
    """Return the tables that a new index of a collection has: those of few documents share all."""
    is_small = run(connection, "is_small", collection_id=collection_id, most=MOST_SHARED).value()
    return "shared" if is_small else "own"


def list_remains(connection: Connection) -> list[Leaves]:
    """Return the tables of generations that were deleted in SQL; none for a user that may not drop them."""
    distributed = placement.is_distributed(connection)
    return [Leaves(number, distributed) for number in run(connection, "list_remains").values()]


def analyze_parents(connection: Connection) -> None:
    """Update planner statistics over all generations; the connection must be in autocommit.

    Corrupt tables are tolerated: the index may be rebuilt to replace them.
    """
    inner = autocommitting(connection)
    # Before that version, ANALYZE rescans every partition for each parent.
    only = sql.SQL("ONLY" if inner.info.server_version >= _ANALYZE_ONLY_SINCE else "")
    try:
        inner.execute(statement("analyze_parents", only=only))
    except psycopg.Error as error:
        if corruption_message(error) is None:
            raise


def analyze_if_stale(connection: Connection) -> None:
    """Update planner statistics once generations have doubled since; the connection must be in autocommit."""
    if run(connection, "has_stale_statistics").value():
        analyze_parents(connection)
    analyze_refilled(connection)


def analyze_refilled(connection: Connection) -> None:
    """Update planner statistics of tables that were filled again after they were analyzed almost empty.

    The connection must be in autocommit.
    """
    for names in run(connection, "list_stale_tables").rows():
        autocommitting(connection).execute(statement("analyze_table", table=sql.Identifier(*names)))


def report_changes(connection: Connection) -> None:
    """Have the changes of this transaction count for `analyze_refilled` and `vacuum` once it is committed."""
    run(connection, "report_changes")


def limit_lock_wait(connection: Connection, milliseconds: int) -> None:
    """Limit the session's lock waits; 0 removes the limit."""
    run(connection, "limit_lock_wait", milliseconds=str(milliseconds))
