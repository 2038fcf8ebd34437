"""Where the documents of a temporary collection came from, kept in their attributes."""

from collections.abc import Iterator
from typing import cast

from sqlalchemy import Connection

from nearsim_db.records import CollectionId
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import Leaves, statement


def origin(part: int, position: int) -> dict[str, object]:
    """The attributes of a document that stands at `position` of the input's part number `part`."""
    return {"part": part, "position": position}


def stream_unique_origins(
    connection: Connection, collection_id: CollectionId, leaves: Leaves
) -> Iterator[tuple[int, int]]:
    """(part, position) of the survivors and of the documents in no cluster, in ascending order."""
    with driver(connection).cursor(name="nearsim_unique_origins") as cursor:
        cursor.itersize = 10_000
        cursor.execute(statement("read_unique_origins", leaves), {"collection_id": collection_id})
        for row in cursor:
            yield cast(tuple[int, int], row)
