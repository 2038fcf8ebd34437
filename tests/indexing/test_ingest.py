"""Ingesting: every record is accounted for, and no work is done twice."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import psycopg
import pyarrow
import pytest

from nearsim_db import Document, Index
from nearsim_db.errors import ConflictError, InputError, NotFoundError
from nearsim_db.indexing.ingest import bulk
from nearsim_db.readers import Source, from_documents
from nearsim_db.records import OnDuplicate, ReadDocument, Reject
from nearsim_db.similarity import presets
from nearsim_db.similarity.recipe import override
from nearsim_db.similarity.text import pages
from nearsim_db.similarity.text.markup import strip_html

TEXT = "the very same words are in the body of each of these documents"
TEXTS = ("title", "body", "source", "url")


def write(file: Path, *records: object) -> Path:
    """A JSONL file; strings are written as they are."""
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def rejects_of(file: Path) -> list[tuple[int, str | None]]:
    """Line and id of each reject."""
    return [(one["line"], one["id"]) for one in map(json.loads, file.read_text().splitlines())]


@pytest.fixture
def index(database_url: str) -> Index:
    """An index on an empty database."""
    return Index.connect(database_url)


def test_a_refused_ingest_leaves_an_earlier_file_of_rejects(
    index: Index, database_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "rejects.jsonl"
    file.write_text("earlier\n")
    with (
        psycopg.connect(database_url) as connection,
        Index.connect(connection=connection) as borrowing,
        pytest.raises(ConflictError),
    ):
        borrowing.ingest([], rejects=file, dry_run=True)
    assert file.read_text() == "earlier\n"


@pytest.mark.parametrize("batch", [2, 1000])
def test_last_record_of_an_id_is_kept_and_earlier_ones_rejected(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(bulk, "_BATCH_DOCUMENTS", batch)
    file = write(
        tmp_path / "in.jsonl",
        {"id": "a", "text": "first"},
        {"id": "b", "text": "only"},
        {"id": "c", "text": "other"},
        {"id": "a", "text": "second"},
        "not json",
        {"id": "a", "text": "third"},
    )
    with index:
        summary = index.ingest(Source([file]), rejects=tmp_path / "rejects.jsonl")
        assert index.get("a")["body"] == "third"
        again = index.ingest(Source([file]))
    assert (summary.read, summary.inserted, summary.updated, summary.unchanged, summary.rejected) == (
        6,
        3,
        0,
        0,
        3,
    )
    assert sorted(rejects_of(tmp_path / "rejects.jsonl")) == [(1, "a"), (4, "a"), (5, None)]
    assert (again.inserted, again.rejected) == (0, 3)
    assert again.inserted + again.updated + again.unchanged == 3


@pytest.mark.parametrize(
    ("batch", "most"),
    [pytest.param(1, 1_009, marks=pytest.mark.slow("a transaction a document")), (2_000, 9)],
)
def test_many_files_are_few_batches_and_an_id_of_another_file_replaces(
    database_url: str, monkeypatch: pytest.MonkeyPatch, batch: int, most: int
) -> None:
    """Records of one id are compared in turn, whether they share a batch or not."""
    monkeypatch.setattr(bulk, "_BATCH_DOCUMENTS", batch)
    texts = [("a", "1"), ("b", "1"), ("a", "1"), ("c", "1"), ("b", "2"), ("a", "3")]
    texts += [(str(number), "none") for number in range(1_000)]
    given = [ReadDocument(Document(id, body=body), f"{at}.jsonl", 1) for at, (id, body) in enumerate(texts)]
    stages: list[str] = []
    with Index.connect(database_url, progress=lambda stage, *_: stages.append(stage)) as index:
        summary = index.ingest([*given, Reject("x.jsonl", 1, "not JSON"), given[0]])
        bodies = {one: index.get(one)["body"] for one in "abc"}
    assert (summary.read, summary.inserted, summary.updated, summary.unchanged) == (1_008, 1_003, 3, 1)
    assert (summary.replaced, summary.rejected) == (3, 1)
    assert bodies == {"a": "1", "b": "2", "c": "1"}
    assert stages.count("read") <= most


def test_unchanged_documents_are_not_written(index: Index) -> None:
    documents = [Document(f"d{number}", body=f"text number {number}") for number in range(10)]
    with index:
        assert index.add(documents).inserted == 10
        before = [index.get(f"d{number}")["revision"] for number in range(10)]
        again = index.add([*documents[:9], Document("d9", body="changed")])
        assert (again.unchanged, again.updated) == (9, 1)
        after = [index.get(f"d{number}")["revision"] for number in range(10)]
        assert after[:9] == before[:9] and after[9] > before[9]


def test_strict_stops_at_the_first_reject(index: Index, tmp_path: Path) -> None:
    file = write(tmp_path / "in.jsonl", {"id": "a", "text": "fine"}, "{", {"id": "b", "text": "not reached"})
    with index, pytest.raises(InputError, match=r"in\.jsonl, line 2"):
        index.ingest(Source([file]), strict=True)


def test_strict_stops_at_an_id_of_an_earlier_batch(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch with the repeated id is not written, nor is any later one."""
    monkeypatch.setattr(bulk, "_BATCH_DOCUMENTS", 2)
    lines = [{"id": id, "text": f"{id} in record {number}"} for number, id in enumerate("abcadefg")]
    with (
        index,
        pytest.raises(InputError, match=r"line 1: duplicate id \(also on line 4\).*first reject") as raised,
    ):
        index.ingest(Source([write(tmp_path / "in.jsonl", *lines)]), strict=True)
    assert raised.value.summary is not None and raised.value.summary.rejected == 1
    with index:
        assert index.get("a")["body"] == "a in record 0"
        assert index.get("b")["body"] == "b in record 1"
        for missing in "cdefg":
            with pytest.raises(NotFoundError):
                index.get(missing)


def test_dry_run_writes_nothing(index: Index, tmp_path: Path) -> None:
    with index:
        file = write(tmp_path / "in.jsonl", {"id": "a", "text": "new"}, {"id": "b", "text": "new"}, "x")
        summary = index.ingest(Source([file]), dry_run=True)
        assert (summary.inserted, summary.updated, summary.rejected) == (2, 0, 1)
        assert index.database.collections() == []
        index.ingest(Source([file]))
        write(file, {"id": "a", "text": "other"}, {"id": "b", "text": "new"}, {"id": "c", "text": "new"})
        summary = index.ingest(Source([file]), dry_run=True)
        assert (summary.inserted, summary.updated, summary.unchanged) == (1, 1, 1)
        assert index.get("a")["body"] == "new"
        with pytest.raises(NotFoundError, match="'c'"):
            index.get("c")


def test_rows_from_python_are_documents(index: Index) -> None:
    table = pyarrow.table({"id": [1, 2], "text": [TEXT, None], "day": [date(2024, 1, 2), None]})
    rows = [{"id": "c", "text": TEXT}, ("d", TEXT), {"text": TEXT}]
    assert index.add(table).inserted == 2
    summary = index.add(rows)
    assert (summary.inserted, summary.rejected) == (2, 1) and "no 'id'" in summary.first_rejects[0].reason
    assert {(one.left, one.right) for one in index.pairs()} == {("1", "c"), ("1", "d"), ("c", "d")}


def test_values_of_other_types_are_counted_and_the_rest_is_stored(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "_BATCH_DOCUMENTS", 2)
    wrong = [float("nan"), 5, b"bytes", ["list"]]
    untyped: Any = Document
    given = [untyped("first", body=TEXT, published_at=date(2024, 5, 31))]
    given += [untyped(f"{name}{at}", **{name: one}) for name in TEXTS for at, one in enumerate(wrong)]
    given += [Document("last", body=TEXT, attributes={"score": np.float64(0.5)})]
    with index:
        summary = index.add(given)
        assert (summary.read, summary.inserted, summary.rejected) == (18, 2, 16)
        assert summary.first_rejects[0].external_id == "title0"
        assert "'title' is a number, nan" in summary.first_rejects[0].reason
        assert index.get("first")["published_at"] == datetime(2024, 5, 31, tzinfo=UTC)
        assert index.get("last")["attributes"] == {"score": 0.5}
        assert [{one.left, one.right} for one in index.pairs()] == [{"first", "last"}]
        for one in wrong:
            with pytest.raises(InputError, match="document 'a name': 'body' is"):
                index.check(Document("a name", body=one))  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"documents, line 1: 'url' is .*document 'nan'"):
            index.ingest(from_documents([Document("nan", url=wrong[0])]), strict=True)  # type: ignore[arg-type]


def test_whatever_ends_an_ingest_what_was_stored_is_indexed(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read before an error is stored; of an interruption, the batches that were complete."""
    monkeypatch.setattr(bulk, "_BATCH_DOCUMENTS", 2)
    ends: list[tuple[str, type[BaseException], OnDuplicate | None, int]] = [
        ("abc", ValueError, None, 3),
        ("def", KeyboardInterrupt, None, 5),
        ("ghi", ValueError, "flag", 8),
    ]

    def given(names: str, error: type[BaseException]) -> Iterator[Document]:
        for name in names:
            yield Document(name, body=TEXT)
        raise error(f"after {name}")

    with index:
        for names, error, on_duplicate, documents in ends:
            with pytest.raises(error, match=f"after {names[-1]}"):
                index.add(given(names, error), on_duplicate)
            stats = index.stats()
            assert (stats["state"], stats["queued"], stats["changes_waiting"]) == ("live", 0, 0)
            assert stats["indexed"] == stats["documents"] == documents
            (cluster,) = index.clusters()
            assert len(cluster.members) == documents
        with pytest.raises(KeyboardInterrupt):
            index._ingest(_interrupted(), resumable=True)
        assert index.stats()["changes_waiting"] == 2


def _interrupted() -> Iterator[ReadDocument | Reject]:
    yield from from_documents([Document("j", body=TEXT), Document("k", body=TEXT), Document("l", body=TEXT)])
    raise KeyboardInterrupt


def test_empty_documents_match_nothing_and_are_counted(index: Index) -> None:
    with index:
        index.add(
            [Document("a"), Document("b", body=""), Document("c", body=" \n\u200b"), Document("d", "!?")]
        )
        assert list(index.pairs()) == []
        assert index.stats()["no_features"] == 4


@pytest.mark.slow("large")
def test_a_large_document(index: Index) -> None:
    words = " ".join(f"{number:01000}" for number in range(50_000))
    assert len(words) > 50_000_000
    with index:
        index.add([Document("large", body=words), Document("same", body=words + " end")])
        (pair,) = index.pairs()
        assert (pair.intersection, pair.union) == (49_998, 49_999)


def page(number: int) -> str:
    return f"<html><body><p>one two three four five six seven eight <b>{number}</b></p></body></html>"


@pytest.mark.parametrize("on_duplicate", [None, "flag"])
def test_html_under_a_recipe_that_keeps_markup_produces_a_warning(
    index: Index, on_duplicate: OnDuplicate | None
) -> None:
    with index:
        index.add([Document("text", body="no markup in 3 < 4")])
        index.create_profile("pages", presets.load("web-pages"))
        assert index.warnings == []
        index.add([Document("a", body=page(1)), Document("b", body="text")], on_duplicate)
        (warning,) = index.warnings
        assert warning.startswith("profile default: 50% of the texts are HTML")
        assert "normalise.html" in warning and "Menus" in warning


@pytest.mark.parametrize("preset", ["default", "web-pages"])
def test_a_first_build_warns_of_html_once(index: Index, preset: str) -> None:
    with index:
        index.create_profile("default", presets.load(preset))
        index.add([Document(str(number), body=page(number)) for number in range(3)])
        found = [one for one in index.warnings if "HTML" in one]
        assert len(found) == (preset == "default")


def test_a_page_is_parsed_once_for_one_indexing(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def strip_and_count(text: str) -> str:
        parsed.append(text)
        return strip_html(text)

    monkeypatch.setattr(pages, "strip_html", strip_and_count)
    with index:
        index.create_profile("default", override(presets.load("web-pages"), ["normalise.html=true"]))
        index.add([Document(str(number), body=page(number)) for number in range(20)])
        assert sorted(parsed) == sorted(map(page, range(20)))
        assert len(list(index.pairs())) == 190
        index.add([Document("20", body=page(20))])
        assert parsed.count(page(20)) == 1


@pytest.mark.slow("many batches")
def test_two_writers_at_once_miss_no_pair(database_url: str) -> None:
    body, start = "all but one of these words are the same in each document", Barrier(2)

    def write(numbers: range) -> None:
        with Index.connect(database_url) as index:
            start.wait()
            for number in numbers:
                index.add([Document(f"d{number}", body=f"{body}, {number}")])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, (range(12), range(12, 24))))
    with Index.connect(database_url) as index:
        assert len(list(index.pairs())) == 24 * 23 // 2
        assert [len(cluster.members) for cluster in index.clusters()] == [24]
