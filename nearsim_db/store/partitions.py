"""The tables of one generation: made standalone, loaded, attached, counted, dropped."""

import psycopg
from psycopg import sql
from sqlalchemy import Connection

from nearsim_db.store.driver.engine import autocommitting, damage_in, driver
from nearsim_db.store.driver.statements import INDEX_SCHEMA, PARENTS, SCHEMA, Leaves, statement

_ANALYZE_ONLY_SINCE = 18_00_00
_COUNTS = (
    "indexed",
    "no_features",
    "twins",
    "pairs",
    "stored_pairs",
    "clusters",
    "clustered_documents",
    "signature_bytes",
    "band_bytes",
    "pair_bytes",
)


def create(connection: Connection, leaves: Leaves) -> None:
    """Make a generation's own tables, standalone."""
    driver(connection).execute(statement("create_leaves", leaves))


def attach(connection: Connection, leaves: Leaves) -> None:
    """Make a generation's loaded tables partitions of their parents."""
    driver(connection).execute(statement("attach_leaves", leaves))


def detach(connection: Connection, leaves: Leaves) -> None:
    """Take a generation's tables out of their parents, without blocking who works on the others.

    The connection must be in autocommit. Interrupted detaches are finished first, those of other generations too: a
    parent can have only one. What is not attached is left as it is.
    """
    inner = autocommitting(connection)
    for name in PARENTS:
        parent, leaf = sql.Identifier(SCHEMA, name), leaves.qualified(name)
        pending = inner.execute(statement("find_pending_detaches"), {"parent": f"{SCHEMA}.{name}"}).fetchall()
        for (table,) in pending:
            begun = sql.Identifier(INDEX_SCHEMA, str(table))
            inner.execute(statement("finish_detach", parent=parent, leaf=begun))
        if inner.execute(statement("is_attached"), {"leaf": leaf}).fetchone() == (True,):
            inner.execute(statement("detach_leaf", parent=parent, leaf=leaves.table(name)))


def drop(connection: Connection, leaves: Leaves) -> None:
    """Drop a generation's tables, as far as they are there."""
    driver(connection).execute(statement("drop_leaves", leaves))


def count(connection: Connection, leaves: Leaves) -> dict[str, int]:
    """What a built generation holds: rows by kind, and bytes on disk with indexes."""
    sizes = {"signature": "signature", "band": "band", "pair": "similar_pair"}
    parameters = {name: leaves.qualified(parent) for name, parent in sizes.items()}
    row = driver(connection).execute(statement("count_generation", leaves), parameters).fetchone()
    assert row is not None
    return dict(zip(_COUNTS, (int(str(value)) for value in row), strict=True))


def vacuum(connection: Connection, leaves: Leaves, parent: str) -> None:
    """VACUUM (ANALYZE) one of a generation's tables; the connection must be in autocommit."""
    autocommitting(connection).execute(statement("vacuum_leaf", leaf=leaves.table(parent)))


def analyze_parents(connection: Connection) -> None:
    """Tell the planner what all generations hold together; the connection must be in autocommit.

    A table that cannot be read leaves it with what it knew: another index is perhaps built to replace that one.
    """
    inner = autocommitting(connection)
    # Before that, partitions are looked at again, which takes as long for each as for all of them together.
    only = sql.SQL("ONLY" if inner.info.server_version >= _ANALYZE_ONLY_SINCE else "")
    try:
        inner.execute(statement("analyze_parents", only=only))
    except psycopg.Error as error:
        if damage_in(error) is None:
            raise


def analyze_outgrown(connection: Connection) -> None:
    """Tell the planner again once generations have doubled since; the connection must be in autocommit."""
    row = autocommitting(connection).execute(statement("has_stale_statistics")).fetchone()
    if row == (True,):
        analyze_parents(connection)


def wait_shortly(connection: Connection, milliseconds: int) -> None:
    """From now on wait for locks only so long in this session; 0 for as long as it takes."""
    parameters = {"milliseconds": str(milliseconds)}
    driver(connection).execute(statement("limit_lock_wait"), parameters)


def read_bytes(connection: Connection, leaves: Leaves) -> int:
    """What a generation's tables take on disk, with indexes, as the last VACUUM saw it; nobody is waited for."""
    tables = [leaves.qualified(parent) for parent in PARENTS]
    row = driver(connection).execute(statement("read_leaf_bytes"), {"tables": tables}).fetchone()
    assert row is not None
    return int(str(row[0]))


def read_holders(connection: Connection, leaves: Leaves) -> list[str]:
    """Sessions that use a generation's tables, or the parents that these are still to leave."""
    tables = [name for parent in PARENTS for name in (f"{SCHEMA}.{parent}", leaves.qualified(parent))]
    rows = autocommitting(connection).execute(statement("list_lock_holders"), {"tables": tables}).fetchall()
    return [str(row[0]) for row in rows]
