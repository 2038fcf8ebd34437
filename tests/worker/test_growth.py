"""A live index in shared tables that grows large is moved to tables of its own by a worker."""

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.store import generation_rows, partitions
from nearsim_db.store.driver.statements import PARENTS
from nearsim_db.worker.worker import Worker

FEW = 10
ROWS = "SELECT count(*) FROM nearsim_index.{}_shared WHERE generation_id = %s"


def document(number: int) -> Document:
    """Documents of families of three, alike in all words but one."""
    words = " ".join(f"family{number // 3}word{at}" for at in range(30))
    return Document(f"d{number}", body=f"{words} own{number}")


def test_a_grown_index_moves_to_its_own_tables(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "MOST_SHARED", FEW)
    with Index.connect(database_url) as index:
        index.add([document(number) for number in range(FEW)])
        with index.database.transaction() as connection:
            (small,) = generation_rows.list_generations(connection)
        assert small.leaves.are_shared
        index.add([document(number) for number in range(FEW, 3 * FEW)])
        Worker(database_url).drain()
        with index.database.transaction() as connection:
            states = {one.leaves.are_shared: one for one in generation_rows.list_generations(connection)}
        assert states[False].state == "live"
        assert states[False].fingerprint == small.fingerprint
        pairs = {(pair.left, pair.right) for pair in index.pairs()}
        index.add([document(3 * FEW)])  # of the last family
    Worker(database_url).drain()
    with Index.connect(database_url) as index:
        assert {(pair.left, pair.right) for pair in index.pairs()} == pairs
        with index.database.transaction() as connection:
            assert [one.leaves.are_shared for one in generation_rows.list_generations(connection)] == [False]
    assert len(pairs) == 3 * FEW
    with psycopg.connect(database_url) as reader:
        counts = [reader.execute(ROWS.format(parent), [small.generation_id]).fetchone() for parent in PARENTS]
    assert counts == [(0,)] * len(PARENTS)
