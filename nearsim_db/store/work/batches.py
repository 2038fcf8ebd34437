"""Batches: the documents that a worker signs and then searches are one row of the queue, until that fails."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from psycopg import sql

from nearsim_db.records import WorkStage
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.statements import Leaves, run, statement
from nearsim_db.store.work.queue import Batch

if TYPE_CHECKING:
    from nearsim_db.similarity.arrays import Ints


def take(connection: Connection, leaves: Leaves, lease_id: int, most: int) -> Batch | None:
    """Make a batch of the next documents to sign that have not failed before; None if there are none."""
    for batch_id, doc_ids in run(connection, "take_batch", leaves, lease_id=lease_id, batch=most).rows():
        return Batch(batch_id, doc_ids)
    return None


def lock(connection: Connection, leaves: Leaves, batch: Batch) -> list[int]:
    """Lock a batch to sign until the transaction ends; return its documents, none if the lease was lost.

    Those that were purged are no longer in it.
    """
    rows = run(connection, "lock_batch", leaves, batch_id=batch.batch_id).rows()
    return cast(list[int], rows[0][0]) if rows else []


def continue_with_search(
    connection: Connection, leaves: Leaves, batch: Batch, doc_ids: "Sequence[int] | Ints"
) -> Batch:
    """Have a locked batch of signed documents search for these; without any it is finished."""
    if not len(doc_ids):
        finish(connection, leaves, batch)
        return Batch(batch.batch_id, [])
    searching = Batch(batch.batch_id, sorted(map(int, doc_ids)))
    run(connection, "continue_batch", leaves, batch_id=batch.batch_id, doc_ids=packed_ids(searching.doc_ids))
    return searching


def finish(connection: Connection, leaves: Leaves, batch: Batch) -> None:
    """Remove a batch, which is done."""
    run(connection, "finish_batch", leaves, batch_id=batch.batch_id)


def split(connection: Connection, batch: Batch) -> tuple[WorkStage, list[int]] | None:
    """Turn a batch into work under its lease; return the stage and the documents, None if the lease was lost."""
    command = statement("split_batches", skipping_locked=sql.SQL(""))
    for stage, doc_ids in run(connection, command, batch_id=batch.batch_id, lease_ids=[]).rows():
        return stage, doc_ids
    return None


def split_leased(connection: Connection, lease_ids: Sequence[int], *, wait: bool = True) -> None:
    """Turn the batches of leases into work; without `wait` those locked by a running transaction are skipped."""
    skipping = sql.SQL("" if wait else "SKIP LOCKED")
    parameters = {"batch_id": None, "lease_ids": list(lease_ids)}
    run(connection, statement("split_batches", skipping_locked=skipping), **parameters)
