"""The nearest documents of collections, of rows and of files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nearsim_db import Document, Index
from nearsim_db.errors import InputError
from tests.builders.command_line import CommandLine, write_jsonl

SHOP = {
    "a1": "Sony turntable PSLX350H with belt drive",
    "a2": "Bose Acoustimass speaker system AM53BK",
    "a3": "Linksys EtherFast switch EZXS88W",
    "a4": "Panasonic integrated telephone KXTSC14W",
}
OTHER = {
    "b1": "PSLX350H Sony belt-drive turntable",
    "b2": "Bose Acoustimass 5 III speakers, AM53BK black",
    "b3": "Linksys EZXS88W 8-port workgroup switch",
    "b4": "Garden hose of green rubber, 25 m",
}
MATCHES = {("a1", "b1"), ("a2", "b2"), ("a3", "b3")}


def documents() -> list[Document]:
    return [
        Document(id, title=text, source=source)
        for source, texts in (("shop", SHOP), ("other", OTHER))
        for id, text in texts.items()
    ]


@pytest.fixture
def index(database_url: str) -> Iterator[Index]:
    with Index.connect(database_url) as index:
        index.add(documents())
        yield index


def test_each_record_of_a_source_finds_its_match_in_the_other(index: Index) -> None:
    found = list(index.nearest(1, mutual=True, across="source"))
    assert {tuple(sorted((one.id, one.nearest))) for one in found} == MATCHES
    assert all(one.rank == 1 and 0.2 <= one.similarity < 1 for one in found)
    assert found[0].title == SHOP["a1"] and found[0].nearest_title == OTHER["b1"]


def test_records_are_compared_within_the_values_of_a_field(index: Index) -> None:
    index.add([Document("a5", title=SHOP["a3"] + " new", source="shop")])
    found = list(index.nearest(1, within_fields=["source"]))
    assert {tuple(sorted((one.id, one.nearest))) for one in found} >= {("a3", "a5")}
    assert all(one.id[0] == one.nearest[0] for one in found)


def test_every_document_has_at_most_k_most_similar_first(index: Index) -> None:
    found = list(index.nearest(3, min_similarity=0.0))
    for id in SHOP | OTHER:
        own = [one for one in found if one.id == id]
        assert [one.rank for one in own] == list(range(1, len(own) + 1)) and len(own) <= 3
        assert [one.similarity for one in own] == sorted((one.similarity for one in own), reverse=True)
        assert id not in {one.nearest for one in own}


def test_rows_and_another_collection_are_searched(index: Index, database_url: str) -> None:
    rows = [("x", SHOP["a3"]), ("y", "nothing of the kind")]
    assert [(one.id, one.nearest) for one in index.nearest(1, documents=rows, min_similarity=0.4)] == [
        ("x", "a3")
    ]
    with Index.connect(database_url, collection="more") as more:
        more.add([Document(id, title=text) for id, text in OTHER.items()])
        assert {(one.id, one.nearest) for one in index.nearest(1, within="more") if one.id in SHOP} >= MATCHES
        assert {one.nearest for one in more.nearest(1, documents=rows)} == {"b3"}


def test_a_margin_leaves_out_what_the_next_document_comes_close_to(index: Index) -> None:
    index.add([Document("b5", title=OTHER["b1"] + " new", source="other")])
    found = {
        margin: list(index.nearest(1, mutual=True, across="source", margin=margin)) for margin in (0.0, 0.3)
    }
    pairs = {margin: {tuple(sorted((one.id, one.nearest))) for one in own} for margin, own in found.items()}
    assert pairs == {0.0: MATCHES, 0.3: MATCHES - {("a1", "b1")}}


@pytest.mark.parametrize("given", [{"k": 0}, {"min_similarity": 1.5}, {"margin": 1.0}, {"across": "colour"}])
def test_impossible_values_are_refused(index: Index, given: dict[str, object]) -> None:
    with pytest.raises(InputError):
        list(index.nearest(**given))  # type: ignore[arg-type]


def test_command_line(index: Index, database_url: str, tmp_path: Path) -> None:
    nearsim = CommandLine({"NEARSIM_DATABASE_URL": database_url})
    mutual = ("-k", 1, "--mutual", "--across", "source")
    rows = nearsim.succeed("nearest", *mutual, "--format", "jsonl").rows()
    assert {tuple(sorted((row["id"], row["nearest"]))) for row in rows} == MATCHES
    assert list(rows[0]) == ["id", "rank", "nearest", "similarity", "title", "nearest_title"]
    path = write_jsonl(tmp_path / "new.jsonl", [{"id": "x", "title": SHOP["a3"]}, {"id": [], "title": "y"}])
    rejects = tmp_path / "rejects.jsonl"
    outcome = nearsim.succeed(
        "nearest", path, "--in", "default", "-k", 2, "--rejects", rejects, "--format", "jsonl"
    )
    assert [row["nearest"] for row in outcome.rows()] == ["a3", "b3"]
    assert len(rejects.read_text().splitlines()) == 1
    within = nearsim.succeed(
        "nearest", "--min-similarity", 0, "--within", "source", "--format", "jsonl"
    ).rows()
    assert all(row["id"][0] == row["nearest"][0] for row in within)
    bags = nearsim.succeed("nearest", "--weights", "none", "--set", "shingle.scheme=bag", "--json").document()
    assert {"a1", "b1"} <= {row["id"] for row in bags}
