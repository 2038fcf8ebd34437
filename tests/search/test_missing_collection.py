"""Methods that read a collection that does not exist: all raise one error, whatever the collection's name."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from nearsim_db import AsyncIndex, Deduper, Document, Index
from nearsim_db.errors import MissingCollectionError
from nearsim_db.records import DEFAULT
from nearsim_db.search.queries import passages_in

READING: dict[str, Callable[[Index], object]] = {
    "check": lambda index: index.check(Document("new", None, "a text")),
    "check_many": lambda index: list(index.check_many([Document("new", None, "a text")])),
    "similar_to_text": lambda index: index.similar_to_text("a text"),
    "similar": lambda index: index.similar("a"),
    "pairs": lambda index: list(index.pairs()),
    "clusters": lambda index: list(index.clusters()),
    "cluster": lambda index: list(index.cluster("a")),
    "nearest": lambda index: list(index.nearest()),
    "nearest of rows": lambda index: list(index.nearest(documents=[("a", "a text")])),
    "verdicts": lambda index: list(index.verdicts()),
    "events": lambda index: list(index.events()),
    "stats": lambda index: index.stats(),
    "metric": lambda index: index.metric(),
    "least_similarity": lambda index: index.least_similarity(),
    "profiles": lambda index: index.profiles(),
    "get": lambda index: index.get("a"),
    "export": lambda index: index.export(Path("never-written.jsonl")),
    "why": lambda index: index.why("a", "b"),
    "passages": lambda index: index.passages("a", "b"),
    "passages_in": lambda index: passages_in(index, Document("new", None, "a text"), "b"),
    "spread": lambda index: index.spread("a"),
    "look_up_pairs": lambda index: index.look_up_pairs([("a", "b")]),
    "common_fingerprints": lambda index: index.common_fingerprints(),
    "result set": lambda index: Deduper(index).dedupe([1, 2]),
    "result set by external id": lambda index: Deduper(index).dedupe_external(["a", "b"]),
}


@pytest.mark.parametrize("method", READING)
@pytest.mark.parametrize("name", [DEFAULT, "typo"])
def test_a_method_that_reads_refuses_a_missing_collection(database_url: str, method: str, name: str) -> None:
    with (
        Index.connect(database_url, collection=name) as index,
        pytest.raises(MissingCollectionError, match=f"collection '{name}' does not exist .*: none yet"),
    ):
        READING[method](index)


def test_the_error_names_the_server_and_its_collections(database_url: str) -> None:
    with Index.connect(database_url, collection="news") as index:
        index.add([("a", "a text")])
    with psycopg.connect(database_url) as session:
        database = session.info.dbname

    with Index.connect(database_url) as index, pytest.raises(MissingCollectionError) as refused:
        index.stats()

    assert f"does not exist in database {database} " in str(refused.value)
    assert str(refused.value).endswith("existing collections: news")


def test_an_asynchronous_index_refuses_a_missing_collection(database_url: str) -> None:
    async def work() -> None:
        async with await AsyncIndex.connect(database_url) as index:
            assert not await index.has_collection()
            with pytest.raises(MissingCollectionError):
                await index.check(Document("new", None, "a text"))
            with pytest.raises(MissingCollectionError):
                [each async for each in index.pairs()]

    asyncio.run(work())
