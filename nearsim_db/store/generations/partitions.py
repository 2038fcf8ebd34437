"""The tables of one generation: create, attach, detach, count, drop."""

from collections.abc import Iterator
from functools import partial
from typing import Literal

import psycopg
from psycopg import sql

from nearsim_db.errors import UnreachableError
from nearsim_db.records import CollectionId
from nearsim_db.store.citus import placement
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.connection import autocommitting
from nearsim_db.store.driver.driver_errors import corruption_message, retry_conflicts
from nearsim_db.store.driver.statements import INDEX_SCHEMA, PARENTS, SCHEMA, Leaves, run, statement

MOST_SHARED = 20_000  # documents of a collection whose index shares its tables

_ROWS_AT_ONCE = 20_000
_ANALYZE_ONLY_SINCE = 18_00_00
_COUNTS = (
    *("indexed", "no_features", "twins", "pairs", "review_pairs", "stored_pairs", "clusters"),
    *("clustered_documents", "largest_cluster", "signature_bytes", "band_bytes", "pair_bytes"),
)


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


def create(connection: Connection, leaves: Leaves) -> None:
    """Create a generation's own tables, standalone, in one transaction, if it does not share all and has none.

    The band table of a distributed generation is on the nodes from then on. Existing tables are not locked: helpers of
    a build that is resumed read them and wait for each other's writes.
    """
    if leaves.are_shared or run(connection, "exists", leaf=leaves.qualified("band")).value():
        return
    run(connection, "create_leaves", leaves)
    if leaves.distributed:
        placement.distribute_leaf(connection, leaves)


def attach(connection: Connection, leaves: Leaves) -> None:
    """Attach a generation's loaded tables to their parents."""
    for name in leaves.own:
        parent = sql.Identifier(SCHEMA, name)
        run(connection, statement("attach_leaf", leaves, parent=parent, leaf=leaves.table(name)))


def detach(connection: Connection, leaves: Leaves) -> None:
    """Detach a generation's tables without blocking users of other generations.

    The connection must be in autocommit. Interrupted detaches, also of other generations, are finished first, as a
    parent can have only one. Tables that are not attached are skipped.
    """
    inner = autocommitting(connection)
    for name in leaves.own:
        parent, leaf = sql.Identifier(SCHEMA, name), leaves.qualified(name)
        for pending in run(connection, "find_pending_detaches", parent=f"{SCHEMA}.{name}").values():
            unfinished = sql.Identifier(INDEX_SCHEMA, pending)
            inner.execute(statement("finish_detach", parent=parent, leaf=unfinished))
        if run(connection, "is_attached", leaf=leaf).value():
            remote = leaves if name == "band" else None
            if remote and leaves.distributed:
                placement.restore_shards(connection, leaves)
            inner.execute(statement("detach_leaf", remote, parent=parent, leaf=leaves.table(name)))


def empty(connection: Connection, leaves: Leaves) -> None:
    """Delete the rows of a generation from tables that it shares, in slices; the connection must be in autocommit."""
    while retry_conflicts(connection, partial(_delete_some, connection, leaves)):
        pass


def _delete_some(connection: Connection, leaves: Leaves) -> int:
    """Delete some rows of a generation; return how many; 0 also if the table is damaged and cannot be read."""
    try:
        with connection.backend.transaction():
            for deletion in _deletions(leaves):
                if deleted := run(connection, deletion, most=_ROWS_AT_ONCE).count:
                    return deleted
        return 0
    except psycopg.Error as error:
        if corruption_message(error) is None:
            raise
        return 0


def _deletions(leaves: Leaves) -> Iterator[sql.Composed]:
    """Yield the statements that delete some rows of a generation from tables that it shares, signatures last."""
    for parent in filter(leaves.is_shared, reversed(PARENTS)):
        if parent == "band" and leaves.distributed:
            yield statement("delete_next_band", leaves)
        else:
            yield statement("delete_some_rows", leaf=leaves.table(parent), condition=leaves.condition(parent))
    yield statement("delete_some_copies", leaves)


def drop(connection: Connection, leaves: Leaves) -> None:
    """Drop the tables of a generation that exist, and what is left of its rows in tables that it shares."""
    while _delete_some(connection, leaves):
        pass
    if not leaves.are_shared:
        run(connection, "drop_leaves", leaves)


def list_remains(connection: Connection) -> list[Leaves]:
    """Return the tables of generations that were deleted in SQL; none for a user that may not drop them."""
    distributed = placement.is_distributed(connection)
    return [Leaves(number, distributed) for number in run(connection, "list_remains").values()]


def count(connection: Connection, leaves: Leaves) -> dict[str, int]:
    """Return the row counts of a generation, and its sizes in bytes with indexes.

    Raises UnreachableError if a node does not answer.
    """
    sizes = {"signature": "signature", "band": "band", "pair": "similar_pair"}
    parameters = {name: leaves.qualified(parent) for name, parent in sizes.items()}
    try:
        *row, pair_bytes = run(connection, "count_generation", leaves, **parameters).row()
        band_bytes = run(connection, "measure_bands", leaves, **parameters).value()
    except psycopg.errors.InvalidTextRepresentation as error:  # a node's failure instead of a size
        raise UnreachableError(
            f"a node of the cluster does not answer: {error.diag.message_primary}"
        ) from error
    counts = dict(zip(_COUNTS, (*row, band_bytes, pair_bytes), strict=True))
    shares = {f"{name}_bytes": _share(connection, leaves, parent) for name, parent in sizes.items()}
    return {name: int(counts[name] * shares.get(name, 1)) for name in _COUNTS}


def _share(connection: Connection, leaves: Leaves, parent: str) -> float:
    """Return the share of a generation in the bytes of a table: an estimate where it shares it, 0 to 1.

    That of band rows is taken to be that of signatures.
    """
    if not leaves.is_shared(parent):
        return 1.0
    counted = "signature" if parent == "band" else parent
    command = statement("read_share", rows=leaves.rows(counted))
    return float(run(connection, command, leaf=leaves.qualified(counted)).value())


def vacuum(connection: Connection, leaves: Leaves, parent: str) -> None:
    """VACUUM (ANALYZE) one of a generation's tables; the connection must be in autocommit.

    One that small generations share is vacuumed only once as many rows have changed as it has, and not if it is
    vacuumed already.
    """
    if leaves.are_shared:
        _vacuum_if_grown(connection, leaves, parent)
    else:
        autocommitting(connection).execute(statement("vacuum_leaf", leaf=leaves.table(parent)))


def reuse_space(connection: Connection, leaves: Leaves) -> None:
    """Vacuum the tables that a dropped generation shared if they have grown; the connection must be in autocommit."""
    report_changes(connection)
    for parent in PARENTS:
        if leaves.is_shared(parent):
            _vacuum_if_grown(connection, leaves, parent)


def _vacuum_if_grown(connection: Connection, leaves: Leaves, parent: str) -> None:
    if run(connection, "has_grown", leaf=leaves.qualified(parent)).value():
        autocommitting(connection).execute(statement("vacuum_shared", leaf=leaves.table(parent)))


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


def analyze_signed(connection: Connection) -> None:
    """Update planner statistics of the heads of all large generations, after a build has signed its own.

    A generation that they lack would be taken to have one document. The connection must be in autocommit.
    """
    table = sql.Identifier("nearsim_index", "signed_document")
    autocommitting(connection).execute(statement("analyze_table", table=table))


def report_changes(connection: Connection) -> None:
    """Have the changes of this transaction count for `analyze_refilled` and `vacuum` once it is committed."""
    run(connection, "report_changes")


def limit_lock_wait(connection: Connection, milliseconds: int) -> None:
    """Limit the session's lock waits; 0 removes the limit."""
    run(connection, "limit_lock_wait", milliseconds=str(milliseconds))


def read_bytes(connection: Connection, leaves: Leaves) -> int:
    """Return the size of a generation's tables with indexes: of own ones as of their last VACUUM, without a lock."""
    total = 0
    for parent in PARENTS:
        measure = "measure_leaf" if leaves.is_shared(parent) else "read_leaf_bytes"
        size = run(connection, measure, leaf=leaves.qualified(parent)).value()
        total += int(float(size) * _share(connection, leaves, parent))
    return total


def list_lock_holders(connection: Connection, leaves: Leaves) -> list[str]:
    """Return the sessions that use a generation's tables, or the parents these have to be detached from."""
    tables = [name for parent in PARENTS for name in (f"{SCHEMA}.{parent}", leaves.qualified(parent))]
    return run(connection, "list_lock_holders", tables=tables).values()
