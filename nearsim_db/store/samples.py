"""Random samples of a collection's documents."""

from typing import cast

from sqlalchemy import Connection

from nearsim_db.records import CollectionId
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import statement


def sample_documents(connection: Connection, collection_id: CollectionId, size: int, seed: int) -> list[int]:
    """The doc_ids of at most `size` documents of a collection, in order; any set of so many is as probable."""
    parameters = {"collection_id": collection_id, "size": size, "seed": seed}
    rows = driver(connection).execute(statement("sample_documents"), parameters).fetchall()
    return sorted(row[0] for row in cast(list[tuple[int]], rows))
