"""The tables of one generation: made standalone, loaded, attached, counted, dropped."""

import psycopg
from sqlalchemy import Connection

from nearsim_db.store.engine import driver
from nearsim_db.store.statements import Leaves, statement

_COUNTS = (
    "documents",
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


def drop(connection: Connection, leaves: Leaves) -> None:
    """Drop a generation's tables, as far as they are there."""
    driver(connection).execute(statement("drop_leaves", leaves))


def count(connection: Connection, leaves: Leaves) -> dict[str, int]:
    """What a built generation holds: rows by kind, and bytes on disk with indexes."""
    sizes = {"signature": "signature", "band": "band", "pair": "similar_pair"}
    parameters = {name: f"nearsim.{leaves.name(parent)}" for name, parent in sizes.items()}
    row = driver(connection).execute(statement("count_generation", leaves), parameters).fetchone()
    assert row is not None
    return dict(zip(_COUNTS, (int(str(value)) for value in row), strict=True))


def vacuum(connection: Connection, leaves: Leaves, parent: str) -> None:
    """VACUUM (ANALYZE) one of a generation's tables; the connection must be in autocommit."""
    inner = connection.connection.driver_connection
    assert isinstance(inner, psycopg.Connection)
    inner.execute(statement("vacuum_leaf", leaf=leaves.table(parent)))
