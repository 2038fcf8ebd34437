"""Methods of an index as coroutines, which run in threads; streams as asynchronous iterators."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    import pyarrow

Given = ParamSpec("Given")
Found = TypeVar("Found")
Row = TypeVar("Row")

_ROWS_AT_ONCE = 100


class Thread:
    """A thread in which calls run one after the other."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="nearsim-async")

    async def run(self, action: Callable[[], Found]) -> Found:
        """Return what an action returns. It is not interrupted when the task is cancelled."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, action)

    def end(self) -> None:
        """End once what was begun is done."""
        self._pool.shutdown(wait=False)


class AsyncResults(AsyncIterator[Row], Generic[Row]):
    """Records that are read in a thread of their own as they are used; call `aclose` when leaving them early."""

    def __init__(self, ask: Callable[[], Generator[Row, None, None]], rows_at_once: int) -> None:
        self._ask, self._most = ask, rows_at_once
        self._records: Generator[Row, None, None] | None = None
        self._thread: Thread | None = None
        self._read: list[Row] = []

    async def __anext__(self) -> Row:
        if not self._read:
            found = await self._run(lambda: list(islice(self._opened(), self._most)))
            self._read = found[::-1]
        if not self._read:
            await self.aclose()
            raise StopAsyncIteration
        return self._read.pop()

    async def aclose(self) -> None:
        """Stop reading, and release the connection."""
        await self._run(lambda: self._opened().close())
        self._read.clear()
        if self._thread is not None:
            self._thread.end()
            self._thread = None

    async def to_arrow(self) -> "pyarrow.Table":
        """Return the records as a table, as those of an `Index` do; before any was read."""
        return await self._whole("to_arrow")

    async def rows(self) -> list[dict[str, Any]]:
        """Return the records as dictionaries, as those of an `Index` do; before any was read."""
        found: list[dict[str, Any]] = await self._whole("rows")
        return found

    async def _whole(self, name: str) -> Any:
        try:
            return await self._run(lambda: getattr(self._opened(), name)())
        finally:
            await self.aclose()

    def _opened(self) -> Generator[Row, None, None]:
        if self._records is None:
            self._records = self._ask()
        return self._records

    async def _run(self, action: Callable[[], Found]) -> Found:
        self._thread = self._thread or Thread()
        return await self._thread.run(action)


def awaited(
    method: Callable[Concatenate[Any, Given], Found],
) -> Callable[Concatenate[Any, Given], Coroutine[Any, Any, Found]]:
    """Return a method as a coroutine, of an object that has the original's as `sync` and a `thread`."""

    @wraps(method)
    async def run(self: Any, /, *args: Given.args, **named: Given.kwargs) -> Found:
        return await self.thread.run(partial(method, self.sync, *args, **named))  # type: ignore[no-any-return]

    return run


def streamed(
    method: Callable[Concatenate[Any, Given], Generator[Row, None, None]], rows_at_once: int = _ROWS_AT_ONCE
) -> Callable[Concatenate[Any, Given], AsyncResults[Row]]:
    """Return a method that streams as one that streams asynchronously."""

    @wraps(method)
    def stream(self: Any, /, *args: Given.args, **named: Given.kwargs) -> AsyncResults[Row]:
        return AsyncResults(partial(method, self.sync, *args, **named), rows_at_once)

    return stream
