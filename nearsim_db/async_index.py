"""The Python API for asyncio: the methods of `Index` as coroutines, and its streams as asynchronous iterators."""

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

# A stream reads one batch with one call in its thread.
_ROWS_PER_BATCH = 100


class Thread:
    """A thread that runs calls one after the other."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="nearsim-async")

    async def run(self, action: Callable[[], Result]) -> Result:
        """Run an action in the thread and return its result. A cancelled task does not stop the action.

        Raises ConflictError after `end`.
        """
        loop = asyncio.get_running_loop()
        try:
            future = loop.run_in_executor(self._pool, action)
        # A thread pool refuses calls after its shutdown.
        except RuntimeError as error:
            raise ConflictError("this AsyncIndex is closed; open another one") from error
        return await future

    def end(self) -> None:
        """Refuse further calls. The thread ends after the calls that were already accepted."""
        self._pool.shutdown(wait=False)


class AsyncResults(AsyncIterator[Row], Generic[Row]):
    """A stream of records that are read as they are used, in the stream's own thread.

    Call `aclose` if you stop before the last record.
    """

    def __init__(self, open_records: Callable[[], Generator[Row, None, None]], rows_per_batch: int) -> None:
        self._open_records, self._rows_per_batch = open_records, rows_per_batch
        self._records: Generator[Row, None, None] | None = None
        self._thread: Thread | None = None
        self._reading: asyncio.Future[list[Row]] | None = None
        self._read: list[Row] = []  # in reverse order: the next record to return is at the end
        self._is_closing = False

    async def __anext__(self) -> Row:
        while not self._read:
            reading = self._reading = self._reading or asyncio.ensure_future(self._run(self._next_rows))
            # If this task is cancelled, the next call returns the batch. Several tasks may wait for one batch.
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
        # While a stream waits for events, its thread is busy and cannot close it.
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
    """Turn a method of `Index` into a coroutine method of `AsyncIndex`."""

    @wraps(method)
    async def run(self: Any, /, *args: Parameters.args, **named: Parameters.kwargs) -> Result:
        return await self.thread.run(partial(method, self.sync, *args, **named))  # type: ignore[no-any-return]

    return run


def streamed(
    method: Callable[Concatenate[Any, Parameters], Generator[Row, None, None]],
    rows_per_batch: int = _ROWS_PER_BATCH,
) -> Callable[Concatenate[Any, Parameters], AsyncResults[Row]]:
    """Turn a method of `Index` that returns a generator into a method of `AsyncIndex` that returns `AsyncResults`."""

    @wraps(method)
    def stream(self: Any, /, *args: Parameters.args, **named: Parameters.kwargs) -> AsyncResults[Row]:
        return AsyncResults(partial(method, self.sync, *args, **named), rows_per_batch)

    return stream


class AsyncIndex:
    """An `Index` for asyncio: its methods are coroutines, and methods that stream return asynchronous iterators.

    Open it with `await AsyncIndex.connect()`, and use it in an `async with` block or call `close()` at the end. Calls
    run one after the other in a single thread, and each stream has its own thread; for concurrent calls, open several
    indexes. If a task is cancelled, its call still runs to the end. The attribute `sync` is the `Index`, whose
    `warnings` list the warnings.
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
        """Open the index of a collection, with the parameters of `Index.connect`.

        `progress` is called in the thread of the index. `connection` must be an ordinary connection, not one for
        asyncio, and you must not use it while a call runs.
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
        """Release the threads and connections, and end the streams that follow events."""
        with suppress(ConflictError):  # already closed
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
    # The next row may take long, so each row is passed on at once.
    check_many: Final = streamed(Index.check_many, rows_per_batch=1)
    events: Final = streamed(Index.events, rows_per_batch=1)
