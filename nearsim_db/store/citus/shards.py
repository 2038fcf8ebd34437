"""Statements on the band rows of many buckets, which on a Citus cluster are sent to each shard by themselves."""

from contextlib import nullcontext

import numpy as np

from nearsim_db.similarity.arrays import Ints
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed
from nearsim_db.store.driver.statements import Leaves, Mode, Result, run

MANY = 1_000  # buckets, of which those of each shard are looked up by themselves


def run_by_shard(
    connection: Connection,
    name: str,
    leaves: Leaves,
    doc_ids: Ints,
    hashes: Ints,
    mode: Mode = "text",
    **parameters: object,
) -> list[tuple[Ints, Result]]:
    """Run the statement of a name on band rows, those of each shard by themselves if they are many.

    A statement on several shards sends all its rows to each of them. Returns the positions of rows with their result.
    """
    lots = _by_shard(connection, leaves, hashes)
    with connection.backend.pipeline() if len(lots) > 1 else nullcontext():
        return [
            (
                lot,
                run(
                    connection,
                    name,
                    leaves,
                    mode,
                    doc_ids=packed(doc_ids[lot]),
                    bucket_hashes=packed(hashes[lot]),
                    **parameters,
                ),
            )
            for lot in lots
        ]


def _by_shard(connection: Connection, leaves: Leaves, hashes: Ints) -> list[Ints]:
    """Return the positions of buckets, those of each shard together if they are many."""
    if not leaves.distributed or len(hashes) < MANY:
        return [np.arange(len(hashes))]
    shards = np.array(run(connection, "find_shards", None, "binary", bucket_hashes=packed(hashes)).value())
    order = np.argsort(shards, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(shards[order])) + 1)
