"""Documents written by other applications, and the leases of workers that index them."""

from nearsim_db import Index
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.queue.dispatch import dispatch_changes
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.work.queue import Batch, WorkQueue

BODIES = ["one two three four five six", "one two three four five six", "something else altogether it is"]


def context_of(index: Index) -> Context:
    """The context of a worker for the live generation."""
    return index.serving().context


def write(index: Index, *bodies: str) -> None:
    """Insert documents as another application, and dispatch the changes."""
    insert(index, *bodies)
    dispatch_changes(index.database.engine)


def insert(index: Index, *bodies: str) -> None:
    """Insert documents as another application."""
    collection_id = index.serving().context.generation.collection_id
    with index.database.transaction() as connection:
        for body in bodies:
            connection.execute(
                (
                    "INSERT INTO nearsim.document (collection_id, external_id, body)"
                    " VALUES (%(collection_id)s, gen_random_uuid(), %(body)s)"
                ),
                {"collection_id": collection_id, "body": body},
            )


def edit(index: Index, body: str) -> None:
    """Change the text of every document, and dispatch the changes."""
    run(index, "UPDATE nearsim.document SET body = %(body)s", body=body)
    dispatch_changes(index.database.engine)


def run(index: Index, command: str, **values: object) -> None:
    """Run a statement and commit."""
    with index.database.transaction() as connection:
        connection.execute(command.encode(), values)


def read(index: Index, command: str, **values: object) -> list[tuple[object, ...]]:
    """The result of a query."""
    with index.database.transaction() as connection:
        return [tuple(row) for row in connection.execute(command.encode(), values)]


def signed(index: Index) -> int:
    """The number of signed documents."""
    return len(read(index, "SELECT FROM nearsim.signature"))


def take(connection: Connection, leaves: Leaves, lease_id: int, batch: int = 1_000) -> list[list[int]]:
    """The doc_ids of the batches of `sign` that a lease gets."""
    return [taken.doc_ids for taken in WorkQueue(connection, leaves).take("sign", lease_id, batch)]


def take_batch(connection: Connection, leaves: Leaves, lease_id: int) -> Batch:
    """The only batch of `sign` that a lease gets."""
    (batch,) = WorkQueue(connection, leaves).take("sign", lease_id, 1_000)
    return batch
