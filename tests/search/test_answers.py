"""Queries read one generation in one transaction."""

from collections.abc import Iterator

import pytest

from nearsim_db import Document, Index
from nearsim_db.errors import NotFoundError
from nearsim_db.search.live_generation import GenerationReplacedError, retry_if_replaced
from tests.builders.engine_hooks import count_transactions


@pytest.fixture
def index(database_url: str) -> Iterator[Index]:
    with Index.connect(database_url) as index:
        index.add(
            [
                Document("a", body="one two three four five six seven eight nine ten"),
                Document("b", body="one two three four five six seven eight nine ten eleven"),
            ]
        )
        yield index


def test_similar_answers_from_one_transaction(index: Index) -> None:
    ended = count_transactions(index.database.engine)
    found = index.similar("a")
    assert len(ended) == 1
    assert [one.external_id for one in found] == ["b"]
    assert found.metric == index.metric() == "jaccard"
    assert index.check(Document("c", body="nothing in common")).metric == "jaccard"
    before = len(ended)
    with pytest.raises(NotFoundError, match="no document 'c'"):
        index.similar("c")
    assert len(ended) == before + 1


def test_a_query_is_retried_with_the_new_generation() -> None:
    attempts: list[str] = []

    def query() -> int:
        attempts.append("query")
        if attempts.count("query") < 3:
            raise GenerationReplacedError
        return len(attempts)

    assert retry_if_replaced(query, lambda: attempts.append("reset")) == 5
    assert attempts == ["query", "reset", "query", "reset", "query"]


def test_other_errors_and_endless_replacements_are_not_retried() -> None:
    attempts: list[int] = []

    def query() -> None:
        attempts.append(1)
        raise ValueError("a bug")

    def replaced() -> None:
        raise GenerationReplacedError

    with pytest.raises(ValueError, match="a bug"):
        retry_if_replaced(query)
    assert attempts == [1]
    with pytest.raises(NotFoundError):
        retry_if_replaced(replaced)
