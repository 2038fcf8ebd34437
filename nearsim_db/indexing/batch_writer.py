"""Writing batches while the next ones are read."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar

Batch = TypeVar("Batch")


class BatchWriter(Generic[Batch]):
    """Writes batches in another thread, in their order, one at a time.

    At most two batches are in memory. Use it in a `with` block; errors of writing are raised by `add` and `finish`, and
    no later batch is written.
    """

    def __init__(self, write: Callable[[Batch], None]) -> None:
        self._write = write
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nearsim-write")
        self._running: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()

    def add(self, batch: Batch) -> None:
        """Begin to write a batch, once the one before it is written."""
        self.finish()
        self._running = self._thread.submit(self._write, batch)

    def finish(self) -> None:
        """Wait until everything that was added is written."""
        running, self._running = self._running, None
        if running is not None:
            running.result()
