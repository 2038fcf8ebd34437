"""Threads and processes of an index: contexts, batches written behind the reader, and imports of own processes."""

import gc
import threading

import pytest

from nearsim_db.indexing.context import ContextFactory
from nearsim_db.indexing.ingest.bulk import BatchWriter
from nearsim_db.similarity.backend import plain_characters
from nearsim_db.store.settings import from_environment


def test_the_end_of_the_block_waits_for_the_threads() -> None:
    with ContextFactory.open(from_environment(), lambda message: None) as contexts:
        done = contexts.pool.submit(lambda: True)
    assert done.done()


def test_collecting_an_abandoned_factory_does_not_wait_for_its_threads() -> None:
    ending = threading.Event()
    opened = ContextFactory.open(from_environment(), lambda message: None)
    running = opened.__enter__().pool.submit(ending.wait, 60)
    del opened
    gc.collect()
    assert not running.done()
    ending.set()
    assert running.result() is True


def test_numba_starts_at_once_for_large_files_only() -> None:
    assert plain_characters(1_000_000_000) == 0
    assert 0 < plain_characters(None) < plain_characters(1_000)


class Refused(Exception):
    pass


def test_batches_are_written_in_order_in_another_thread() -> None:
    written: list[tuple[int, bool]] = []

    def write(batch: int) -> None:
        written.append((batch, threading.current_thread() is threading.main_thread()))

    with BatchWriter(write) as writer:
        for batch in range(5):
            writer.add(batch)
        writer.finish()
    assert written == [(batch, False) for batch in range(5)]


def test_a_batch_is_written_while_the_next_one_is_read() -> None:
    """Else the write would wait for ever."""
    next_is_read = threading.Event()
    waited: list[bool] = []
    with BatchWriter[int](lambda batch: waited.append(next_is_read.wait(60))) as writer:
        writer.add(1)
        next_is_read.set()
        writer.add(2)
        writer.finish()
    assert waited == [True] * 2


@pytest.mark.parametrize("failing", range(4))
def test_nothing_is_written_after_an_error(failing: int) -> None:
    written: list[int] = []

    def write(batch: int) -> None:
        if batch == failing:
            raise Refused
        written.append(batch)

    with BatchWriter(write) as writer:
        with pytest.raises(Refused):
            for batch in range(4):
                writer.add(batch)
            writer.finish()
        writer.finish()
    assert written == list(range(failing))


def test_what_was_added_is_written_though_the_reader_is_interrupted() -> None:
    written: list[int] = []
    with pytest.raises(KeyboardInterrupt), BatchWriter(written.append) as writer:
        for batch in range(3):
            writer.add(batch)
        raise KeyboardInterrupt
    assert written == [0, 1, 2]
