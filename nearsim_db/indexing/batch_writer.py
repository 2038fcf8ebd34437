"""Writing batches while the next ones are read."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar

Batch = TypeVar("Batch")


class BatchWriter(Generic[Batch]):
    """Writes batches in their order, one at a time: the last in the calling thread, the others in another one.

    At most two batches are in memory. Use it in a `with` block; errors of writing are raised by `add` and `finish`, and
    no later batch is written.
    """

    def __init__(self, write: Callable[[Batch], None]) -> None:
        self._write = write
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nearsim-write")
        self._running: Future[None] | None = None
        self._last: Batch | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()

    def add(self, batch: Batch) -> None:
        """Begin to write the batch that was added before this one."""
        if self._last is not None:
            self._await_running()
            self._running = self._thread.submit(self._write, self._last)
        self._last = batch

    def finish(self) -> None:
        """Write everything that was added."""
        self._await_running()
        last, self._last = self._last, None
        if last is not None:
            self._write(last)

    def _await_running(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            try:
                running.result()
            except BaseException:
                self._last = None
                raise
