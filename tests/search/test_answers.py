"""Answers: one generation and one transaction each, as rows and as Arrow tables, also of an index without documents."""

import math
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pyarrow
import pytest

from nearsim_db import Deduper, Document, Index
from nearsim_db.errors import InputError, NotFoundError
from nearsim_db.records import ClusterMember, Pair, arrow_table
from nearsim_db.search.live_generation import GenerationReplacedError, retry_if_replaced
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.command_line import STORIES, STORM, STORM_AGAIN, STORM_LATER
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


DATE = datetime(2024, 5, 31, 12, tzinfo=UTC)


@pytest.fixture
def filled(database_url: str) -> Index:
    with Index.connect(database_url) as filled:
        filled.add([Document(name, None, text, published_at=DATE) for name, text in STORIES.items()])
    return Index.connect(database_url)


def test_tables_have_the_values_of_the_records(filled: Index) -> None:
    with filled:
        filled.pin("harvest", "bridge", "a trial", by="me")
        for records, table, rows in (
            (list(filled.pairs()), filled.pairs().to_arrow(), filled.pairs().rows()),
            (
                list(filled.cluster("storm")),
                filled.cluster("storm").to_arrow(),
                filled.cluster("storm").rows(),
            ),
            (list(filled.verdicts()), filled.verdicts().to_arrow(), filled.verdicts().rows()),
            (filled.similar("storm"), filled.similar("storm").to_arrow(), filled.similar("storm").rows()),
        ):
            assert rows == [asdict(one) for one in records] and rows
            assert table.to_pylist() == rows
        clusters = filled.clusters().to_arrow().to_pylist()
        assert [(one["survivor"], set(one["members"])) for one in clusters] == [
            ("storm", {"storm", "storm-again", "storm-twin"}),
            ("harvest", {"harvest", "bridge"}),
        ]


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "0044-03-15 00:00:00+00 BC"])
def test_a_date_that_python_cannot_hold_is_null_in_a_table(
    filled: Index, database_url: str, moment: str
) -> None:
    with filled:
        with psycopg.connect(database_url, autocommit=True) as plain:
            plain.execute(
                "UPDATE nearsim.document SET published_at = CAST(%s AS timestamptz) WHERE external_id = 'storm'",
                (moment,),
            )
        table = filled.cluster("storm").to_arrow()
    dates = {row["external_id"]: row["published_at"] for row in table.to_pylist()}
    assert dates == {"storm": None, "storm-again": DATE, "storm-twin": DATE}


def test_arguments_that_would_mean_something_else_are_refused(filled: Index) -> None:
    with filled:
        for taking_ids in (filled.delete, filled.purge, Deduper(filled).dedupe_external):
            with pytest.raises(InputError, match="'storm' is a string"):
                taking_ids("storm")
        decision: Any = "Flag"
        with pytest.raises(InputError, match="'Flag'; choose flag, skip, raise"):
            filled.add([], on_duplicate=decision)
        number: Any = 36
        with pytest.raises(InputError, match="the id 36 is not a string"):
            filled.similar(number)
        with pytest.raises(InputError, match="'Flag'; choose survivors, duplicates, all"):
            filled.export(os.devnull, decision)
        for similarity in (1.01, -0.1, math.nan):
            for asked in (filled.similar, filled.similar_to_text):
                with pytest.raises(InputError, match=r"outside 0\.\.1"):
                    asked("storm", min_similarity=similarity)


def test_an_empty_table_has_the_columns_and_types(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.database.create_collection("default")
        table = index.pairs().to_arrow()
    assert table.num_rows == 0
    assert table.schema.field("similarity").type == pyarrow.float64()
    assert table.schema.field("left").type == pyarrow.string()
    members = arrow_table([], ClusterMember)
    assert members.schema.field("published_at").type == pyarrow.timestamp("us", "UTC")


def test_what_was_read_before_is_not_in_the_table(filled: Index) -> None:
    with filled:
        stream = filled.pairs()
        first = next(stream)
        assert isinstance(first, Pair)
        assert first not in [Pair(**row) for row in stream.rows()]
        left = filled.pairs()
        next(left)
        left.close()
        assert list(left) == []


def test_tables_need_pyarrow(filled: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with filled, pytest.raises(ImportError, match=r"nearsim-db\[parquet\]"):
        filled.pairs().to_arrow()


def test_a_new_index_answers_with_nothing(database_url: str, tmp_path: Path) -> None:
    """Without a profile and without documents; documents that wait are an error."""
    with Index.connect(database_url) as index:
        index.database.create_collection("default")
        _assert_empty(index, tmp_path)
        index.create_profile("mine", Recipe())
        for index.profile in (None, "mine"):
            _assert_empty(index, tmp_path)
        index.profile = "other"
        with pytest.raises(NotFoundError, match="has no profile 'other'"):
            index.check(Document("new", body=STORM))
        index.profile = None
        with psycopg.connect(database_url) as application:
            application.execute(
                "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, 'a', 'text')"
            )
        with pytest.raises(NotFoundError, match="is being built"):
            index.check(Document("new", body=STORM))


def _assert_empty(index: Index, folder: Path) -> None:
    assert list(index.check(Document("new", body=STORM))) == []
    assert list(index.similar_to_text(STORM, limit=10)) == []
    assert [list(found) for _, found in index.check_many([Document("new", body=STORM)])] == [[]]
    streams = (index.pairs, index.clusters, index.events, index.verdicts)
    assert [list(stream()) for stream in streams] == [[]] * len(streams)
    assert (index.metric(), index.least_similarity()[1]) == ("jaccard", 0.7)
    assert index.stats()["documents"] == index.export(folder / "all.csv", "all") == 0
    assert (folder / "all.csv").read_text().startswith("id,")
    kept = Deduper(index).dedupe_external(["a", "b"])
    assert [(one.keep, one.indexed) for one in kept] == [(True, False)] * 2
    for unknown in (index.similar, index.cluster):
        with pytest.raises(NotFoundError, match="has no document 'a'"):
            list(unknown("a"))


@pytest.mark.parametrize(("keep", "kept"), [("latest", "c"), ("earliest", "a")])
def test_of_undated_documents_latest_keeps_the_last(database_url: str, keep: str, kept: str) -> None:
    texts = {"a": STORM, "b": STORM_AGAIN, "c": STORM_LATER}
    with Index.connect(database_url, collection=keep) as index:
        index.create_profile("default", override(Recipe(), [f"cluster.keep={keep}", "match.threshold=0.3"]))
        index.add(Document(name, body=text) for name, text in texts.items())
        (cluster,) = index.clusters()
    assert cluster.survivor == kept and set(cluster.members) == set(texts)


def test_profiles_have_their_recipe_and_the_state_of_their_index(index: Index) -> None:
    recipe = override(Recipe(), ["match.threshold=0.9"])
    index.create_profile("strict", recipe)
    profiles = {row.profile: row for row in index.profiles()}
    assert [(row.profile, row.state, row.stage) for row in index.profiles()] == [
        ("default", "live", "done"),
        ("strict", "live", "done"),
    ]
    assert profiles["strict"].recipe.match == recipe.match
    assert profiles["strict"].bands == index.create_profile("again", profiles["strict"].recipe).bands
