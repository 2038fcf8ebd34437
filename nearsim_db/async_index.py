"""An index for asyncio: its methods as coroutines, which run in a thread, and its streams as asynchronous iterators."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial, wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar

from nearsim_db.errors import ConflictError
from nearsim_db.index import Index
from nearsim_db.records import DEFAULT, Progress, silent
from nearsim_db.search.events import Following

if TYPE_CHECKING:
    import pyarrow

    from nearsim_db.store.driver.borrowed import OwnConnection

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Row = TypeVar("Row")

# Each batch is a call in the thread of the stream.
_ROWS_PER_BATCH = 100


class Thread:
    """A thread in which calls run one after the other."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="nearsim-async")

    async def run(self, action: Callable[[], Result]) -> Result:
        """Return the result of an action, which goes on if the task is cancelled.

        Raises ConflictError once the thread has ended.
        """
        loop = asyncio.get_running_loop()
        try:
            future = loop.run_in_executor(self._pool, action)
        # A thread pool refuses calls after its shutdown.
        except RuntimeError as error:
            raise ConflictError("this AsyncIndex is closed; open another one") from error
        return await future

    def end(self) -> None:
        """End once what was begun is done."""
        self._pool.shutdown(wait=False)


class AsyncResults(AsyncIterator[Row], Generic[Row]):
    """Records that are read in a thread of their own as they are used; call `aclose` when leaving them early."""

    def __init__(self, open_records: Callable[[], Generator[Row, None, None]], rows_per_batch: int) -> None:
        self._open_records, self._rows_per_batch = open_records, rows_per_batch
        self._records: Generator[Row, None, None] | None = None
        self._thread: Thread | None = None
        self._reading: asyncio.Future[list[Row]] | None = None
        self._read: list[Row] = []  # the next one is the last
        self._is_closing = False

    async def __anext__(self) -> Row:
        while not self._read:
            reading = self._reading = self._reading or asyncio.ensure_future(self._run(self._next_rows))
            # If this is cancelled, the next call returns what was read. Several tasks may wait for it.
            await asyncio.wait([reading])
            if self._reading is reading:
                self._reading = None
                self._read = reading.result()[::-1]
                if not self._read:
                    await self.aclose()
                    raise StopAsyncIteration
        return self._read.pop()

    async def aclose(self) -> None:
        """Stop reading, and release the connection."""
        self._is_closing = True
        # A stream that waits for events occupies the thread that has to close it.
        if isinstance(self._records, Following):
            self._records.stop()
        await self._run(lambda: self._opened().close())
        self._read.clear()
        if self._thread is not None:
            self._thread.end()
            self._thread = None

    async def to_arrow(self) -> "pyarrow.Table":
        """Return all records as a table, like `Results.to_arrow`; call it before any record is read."""
        return await self._whole("to_arrow")

    async def rows(self) -> list[dict[str, Any]]:
        """Return all records as dictionaries, like `Results.rows`; call it before any record is read."""
        rows: list[dict[str, Any]] = await self._whole("rows")
        return rows

    async def _whole(self, name: str) -> Any:
        try:
            return await self._run(lambda: getattr(self._opened(), name)())
        finally:
            await self.aclose()

    def _next_rows(self) -> list[Row]:
        records = self._opened()
        # `aclose` may have begun while this call waited for the thread.
        return [] if self._is_closing else list(islice(records, self._rows_per_batch))

    def _opened(self) -> Generator[Row, None, None]:
        if self._records is None:
            self._records = self._open_records()
        return self._records

    async def _run(self, action: Callable[[], Result]) -> Result:
        self._thread = self._thread or Thread()
        return await self._thread.run(action)


def awaited(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]:
    """Return a method as a coroutine method of an object that has the original object as `sync`, and a `thread`."""

    @wraps(method)
    async def run(self: Any, /, *args: Parameters.args, **named: Parameters.kwargs) -> Result:
        return await self.thread.run(partial(method, self.sync, *args, **named))  # type: ignore[no-any-return]

    return run


def streamed(
    method: Callable[Concatenate[Any, Parameters], Generator[Row, None, None]],
    rows_per_batch: int = _ROWS_PER_BATCH,
) -> Callable[Concatenate[Any, Parameters], AsyncResults[Row]]:
    """Return a streaming method as one that streams asynchronously."""

    @wraps(method)
    def stream(self: Any, /, *args: Parameters.args, **named: Parameters.kwargs) -> AsyncResults[Row]:
        return AsyncResults(partial(method, self.sync, *args, **named), rows_per_batch)

    return stream


class AsyncIndex:
    """The methods of an `Index` for asyncio: coroutines, and asynchronous iterators where an `Index` streams.

    `await AsyncIndex.connect()` opens it; use it in an `async with` block, or call `close()`. Calls run in a thread of
    the index, one after the other, and each stream runs in a thread of its own; for concurrent calls open several. A
    call whose task is cancelled runs to its end. `sync` is the `Index`, with its `warnings`.
    """

    def __init__(self, index: Index) -> None:
        self.sync: Index = index
        self.thread: Thread = Thread()

    @classmethod
    async def connect(
        cls,
        url: str | None = None,
        *,
        connection: "OwnConnection | None" = None,
        collection: str = DEFAULT,
        profile: str | None = None,
        progress: Progress = silent,
    ) -> Self:
        """Open the index of a collection as `Index.connect` does; `progress` is called in the index's thread.

        A `connection` must be one for threads, not for asyncio, and must not be used while a call runs.
        """
        opening = partial(
            Index.connect,
            url,
            connection=connection,
            collection=collection,
            profile=profile,
            progress=progress,
        )
        return cls(await asyncio.to_thread(opening))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Release threads and connections; streams that follow events end."""
        with suppress(ConflictError):  # closed before
            await self.thread.run(self.sync.close)
        self.thread.end()

    add: Final = awaited(Index.add)
    ingest: Final = awaited(Index.ingest)
    build: Final = awaited(Index.build)
    sweep: Final = awaited(Index.sweep)
    delete: Final = awaited(Index.delete)
    purge: Final = awaited(Index.purge)
    create_collection: Final = awaited(Index.create_collection)
    create_profile: Final = awaited(Index.create_profile)
    has_collection: Final = awaited(Index.has_collection)
    has_profile: Final = awaited(Index.has_profile)
    delete_profile: Final = awaited(Index.delete_profile)
    pin: Final = awaited(Index.pin)
    veto: Final = awaited(Index.veto)
    undo: Final = awaited(Index.undo)
    keep: Final = awaited(Index.keep)
    import_labels: Final = awaited(Index.import_labels)
    profiles: Final = awaited(Index.profiles)
    metric: Final = awaited(Index.metric)
    least_similarity: Final = awaited(Index.least_similarity)
    get: Final = awaited(Index.get)
    similar: Final = awaited(Index.similar)
    similar_to_text: Final = awaited(Index.similar_to_text)
    check: Final = awaited(Index.check)
    export: Final = awaited(Index.export)
    explain: Final = awaited(Index.explain)
    why: Final = awaited(Index.why)
    passages: Final = awaited(Index.passages)
    spread: Final = awaited(Index.spread)
    look_up_pairs: Final = awaited(Index.look_up_pairs)
    common_fingerprints: Final = awaited(Index.common_fingerprints)
    stats: Final = awaited(Index.stats)
    pairs: Final = streamed(Index.pairs)
    clusters: Final = streamed(Index.clusters)
    cluster: Final = streamed(Index.cluster)
    nearest: Final = streamed(Index.nearest)
    verdicts: Final = streamed(Index.verdicts)
    # Each row may take long, so it is passed on at once.
    check_many: Final = streamed(Index.check_many, rows_per_batch=1)
    events: Final = streamed(Index.events, rows_per_batch=1)
