"""AsyncIndex: the methods of Index as coroutines and asynchronous iterators, with the same answers."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from nearsim_db import AsyncIndex, Document, Index
from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.store.clusters.events import Event
from tests.builders.command_line import HARVEST, STORIES, STORM

DOCUMENTS = [Document(name, None, text) for name, text in STORIES.items()]


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


async def until(events: AsyncIterator[Event], kind: str) -> None:
    async for one in events:
        if one.kind == kind:
            return


def test_every_method_of_an_index_is_there() -> None:
    own = {name for name in dir(AsyncIndex) if not name.startswith("_")}
    methods = {
        name for name, one in inspect.getmembers(Index, inspect.isfunction) if not name.startswith("_")
    }
    assert methods - own == {"serving"}


@pytest.mark.parametrize("method", [Index.add, Index.ingest, Index.check_many])
def test_documents_come_first_and_by_that_name(method: Callable[..., object]) -> None:
    assert list(inspect.signature(method).parameters)[1] == "documents"


def test_answers_are_those_of_an_index(database_url: str) -> None:
    async def work() -> None:
        async with await AsyncIndex.connect(database_url) as index:
            assert (await index.add(DOCUMENTS)).inserted == 5
            found = await index.check(Document("new", None, STORM))
            assert {one.external_id for one in found} == {"storm", "storm-again", "storm-twin"}
            with Index.connect(database_url) as plain:
                assert [one async for one in index.pairs()] == list(plain.pairs())
                assert [one async for one in index.clusters()] == list(plain.clusters())
                assert (await index.pairs().to_arrow()).to_pylist() == plain.pairs().rows()
                assert await index.clusters().rows() == plain.clusters().rows()
                assert await index.stats() == plain.stats()
            with pytest.raises(NotFoundError):
                await index.similar("nothing")
            assert await index.delete(["storm"]) == ["storm"]
            assert [one.survivor async for one in index.clusters()] == ["storm-again"]
        with pytest.raises(ConflictError, match="is closed"):
            await index.stats()

    run(work())


def test_the_event_loop_runs_meanwhile(database_url: str) -> None:
    async def work() -> None:
        async with await AsyncIndex.connect(database_url) as index, asyncio.TaskGroup() as tasks:
            await index.add(DOCUMENTS[:1])
            following = index.events(follow=True, new=False)
            seen = tasks.create_task(until(following, "pair_found"))
            await index.add(DOCUMENTS[1:])
            await seen
            await following.aclose()
            done = tasks.create_task(index.check(Document("new", None, HARVEST)))
            assert [one.external_id for one in await done] == ["harvest"]

    run(work())


def test_a_stream_that_is_left_early_is_closed(database_url: str) -> None:
    async def work() -> None:
        async with await AsyncIndex.connect(database_url) as index:
            await index.add(DOCUMENTS)
            stream = index.pairs()
            await anext(stream)
            await stream.aclose()
            assert [one async for one in stream] == []
            shared = index.pairs()
            found = await asyncio.gather(*(anext(shared) for _ in range(3)))
            with Index.connect(database_url) as plain:
                assert found == list(plain.pairs())[:3]

    run(work())


def test_a_cancelled_wait_for_events_loses_none_and_ends(database_url: str) -> None:
    async def work() -> None:
        async with await AsyncIndex.connect(database_url) as index:
            await index.add(DOCUMENTS[:1])
            following, left = index.events(follow=True, new=True), index.events(follow=True, new=True)
            for stream in (following, left):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(stream), 0.2)
            await index.add(DOCUMENTS[1:])
            assert (await anext(following)).kind == "pair_found"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(until(following, "cluster_gone"), 0.2)
            await following.aclose()
            assert [one async for one in following] == []
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(until(left, "cluster_gone"), 0.2)
            await index.close()
            assert [one async for one in left] == []

    run(work())
