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


def test_similar_names_a_missing_document_in_one_transaction(index: Index) -> None:
    ended = count_transactions(index.database.engine)
    with pytest.raises(NotFoundError, match="collection 'default' has no document 'c'"):
        index.similar("c")
    assert len(ended) == 1


def test_a_lookup_has_the_metric_of_its_matches(index: Index) -> None:
    assert index.check(Document("c", body="nothing in common")).metric == "jaccard"


def test_a_query_is_retried_with_the_new_generation() -> None:
    attempts: list[str] = []

    def query() -> int:
        attempts.append("query")
        if attempts.count("query") < 3:
            raise GenerationReplacedError
        return len(attempts)

    assert retry_if_replaced(query, lambda: attempts.append("reset")) == 5
    assert attempts == ["query", "reset", "query", "reset", "query"]


def test_a_generation_that_is_always_replaced_is_an_error() -> None:
    def query() -> None:
        raise GenerationReplacedError

    with pytest.raises(NotFoundError, match="replaced during each of 50 attempts"):
        retry_if_replaced(query)


def test_other_errors_are_not_retried() -> None:
    attempts: list[int] = []

    def query() -> None:
        attempts.append(1)
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        retry_if_replaced(query)
    assert attempts == [1]
