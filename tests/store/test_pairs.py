"""Pairs that two sessions find at the same time are stored once."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from nearsim_db import Document, Index
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.screening import VerifiedPairs
from nearsim_db.store import pairs, signatures
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.statements import Leaves, run

_BODIES = ["the first of three texts", "another one about trees", "a third that is like neither"]
_BLOCKED = (
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %(pid)s AND pg_blocking_pids(pid) <> '{}')"
)


@pytest.fixture
def leaves(database_url: str) -> Iterator[Leaves]:
    """The live generation of three documents, without pairs."""
    with Index.connect(database_url) as index:
        index.add([Document(str(place), body=body) for place, body in enumerate(_BODIES)])
        yield index.serving().context.generation.leaves


def pairs_of(connection: Connection, leaves: Leaves, *ends: tuple[int, int]) -> VerifiedPairs:
    """Pairs as verification returns them."""
    signed = signatures.read_signed(connection, leaves, [1, 2, 3])
    connection.commit()
    left, right = np.array(ends, np.int64).T
    ones, alike = np.ones(len(ends), np.int64), Scores(np.ones(len(ends)))
    digests = {doc_id: one.digest for doc_id, one in signed.items() if one.digest}
    return VerifiedPairs(
        left, right, ones, alike, len(ends), alike, np.zeros(len(ends), bool),
        [digests[one] for one in left.tolist()], [digests[one] for one in right.tolist()],
    )  # fmt: skip


def test_stored_pairs_are_left_out(connection: Connection, leaves: Leaves) -> None:
    first = pairs.store_pairs(connection, leaves, pairs_of(connection, leaves, (2, 3), (1, 2)))
    assert first.tolist() == [[1, 2], [2, 3]]
    again = pairs.store_pairs(connection, leaves, pairs_of(connection, leaves, (1, 2), (1, 3)))
    assert again.tolist() == [[1, 3]]


def test_pair_that_another_session_is_storing_is_left_out(
    connection: Connection, engine: Engine, leaves: Leaves
) -> None:
    found = pairs_of(connection, leaves, (1, 2), (1, 3))
    pairs.store_pairs(connection, leaves, pairs_of(connection, leaves, (1, 2)))
    with engine.connect() as other, engine.connect(autocommit=True) as watching:
        pid = run(other, "SELECT pg_backend_pid()").value()
        stored: list[list[int]] = []
        storing = threading.Thread(
            target=lambda: stored.extend(pairs.store_pairs(other, leaves, found).tolist())
        )
        storing.start()
        while not run(watching, _BLOCKED, pid=pid).value():
            pass
        connection.commit()
        storing.join()
    assert stored == [[1, 3]]
