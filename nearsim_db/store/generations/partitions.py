"""The tables of all generations: the choice for a new generation, what deleted ones left, and planner statistics."""

from typing import Literal

import psycopg
from psycopg import sql

from nearsim_db.records import CollectionId
from nearsim_db.store.citus import placement
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.connection import autocommitting
from nearsim_db.store.driver.driver_errors import corruption_message
from nearsim_db.store.driver.statements import Leaves, run, statement

# A new index shares its tables with others if its collection has at most this many documents.
MAX_SHARED_DOCUMENTS = 20_000

_ANALYZE_ONLY_SINCE = 18_00_00
# shared: the generation shares all tables with others; own: it has its own tables of signatures and of bands.
Tables = Literal["shared", "own"]
SEQUENCES: dict[Tables, str] = {
    "shared": "nearsim.generation_generation_id_seq",
    "own": "nearsim.own_generation",
}


def choose_tables(connection: Connection, collection_id: CollectionId) -> Tables:
    """Return which tables a new index of the collection uses: shared ones if the collection is small."""
    parameters = {"collection_id": collection_id, "max_documents": MAX_SHARED_DOCUMENTS}
    return "shared" if run(connection, "is_small", **parameters).value() else "own"


def list_remains(connection: Connection) -> list[Leaves]:
    """Return the tables left by generations whose rows were deleted in SQL; none if the user may not drop them."""
    distributed = placement.is_distributed(connection)
    generation_ids = run(connection, "list_remains").values()
    return [Leaves(generation_id, distributed) for generation_id in generation_ids]


def analyze_parents(connection: Connection) -> None:
    """Update the planner statistics over all generations. The connection must be in autocommit mode.

    A corrupt table is no error here, because the index may just be being rebuilt to replace it.
    """
    backend = autocommitting(connection)
    # ANALYZE of a parent table scans every partition again, unless it says ONLY, which PostgreSQL has since version 18.
    only = sql.SQL("ONLY" if backend.info.server_version >= _ANALYZE_ONLY_SINCE else "")
    try:
        backend.execute(statement("analyze_parents", only=only))
    except psycopg.Error as error:
        if corruption_message(error) is None:
            raise


def analyze_if_stale(connection: Connection) -> None:
    """Update planner statistics if the rows of all generations have doubled since the last update.

    Also updates those of tables that were filled again. The connection must be in autocommit mode.
    """
    if run(connection, "has_stale_statistics").value():
        analyze_parents(connection)
    analyze_refilled(connection)


def analyze_refilled(connection: Connection) -> None:
    """Update the planner statistics of tables that were almost empty when analyzed, and were filled again since.

    The connection must be in autocommit mode.
    """
    for names in run(connection, "list_stale_tables").rows():
        autocommitting(connection).execute(statement("analyze_table", table=sql.Identifier(*names)))


def report_changes(connection: Connection) -> None:
    """Report the changes of this transaction to the server's statistics, which `analyze_refilled` and `vacuum` use."""
    run(connection, "report_changes")


def limit_lock_wait(connection: Connection, milliseconds: int) -> None:
    """Limit how long the session waits for a lock; 0 removes the limit."""
    run(connection, "limit_lock_wait", milliseconds=str(milliseconds))
