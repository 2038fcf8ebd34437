"""Contexts of generations, and the threads they share."""

import gc
import threading

from nearsim_db.indexing.context import ContextFactory
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
