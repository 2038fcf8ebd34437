"""`export --mark`: the documents of a collection with the columns that `dedupe --mark` writes."""

import json
import random
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from nearsim_db import Index
from nearsim_db.errors import InputError
from tests.builders.command_line import HARVEST, STORM, STORM_AGAIN, CommandLine, write_jsonl

NAMES = ["duplicate_of", "cluster", "cluster_size", "similarity"]


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """Chains of versions of texts, twins, and texts without near-duplicates."""
    choose = random.Random(3)
    rows = []
    for number in range(90):
        words = [f"w{number // 6}x{place}" for place in range(60)]
        for place in choose.sample(range(60), number % 6 and choose.randrange(4)):
            words[place] = f"n{number}x{place}"
        rows.append({"id": f"d{number}", "text": " ".join(words)})
    return write_jsonl(tmp_path / "versions.jsonl", rows)


def test_marks_equal_those_of_dedupe(nearsim: CommandLine, versions: Path, tmp_path: Path) -> None:
    nearsim.succeed("dedupe", versions, "--mark", "--output", tmp_path / "marked.jsonl", "--quiet")
    nearsim.succeed("ingest", versions, "--quiet")

    exported = nearsim.succeed("export", "--mark").rows()

    of_files = [json.loads(line) for line in (tmp_path / "marked.jsonl").read_text().splitlines()]
    compared = ("id", "duplicate_of", "cluster_size", "similarity")
    assert [[row[name] for name in compared] for row in exported] == [
        [row[name] for name in compared] for row in of_files
    ]
    assert any(row["duplicate_of"] for row in exported)

    # Clusters have other numbers in an index, but the same members.
    numbers = {(row["cluster"], other["cluster"]) for row, other in zip(exported, of_files, strict=True)}
    assert len(numbers) == len({number for number, _ in numbers}) == len({number for _, number in numbers})


def test_marks_take_the_place_of_cluster_and_survivor(filled: CommandLine) -> None:
    rows = filled.succeed("export", "--mark").rows()

    assert list(rows[0]) == ["id", "title", "text", "source", "url", "published_at", *NAMES]
    assert {row["id"]: row["duplicate_of"] for row in rows} == {
        "storm": None,
        "storm-again": "storm",
        "storm-twin": "storm",
        "harvest": None,
        "bridge": None,
    }
    assert [row["id"] for row in filled.succeed("export", "--mark", "--keep", "survivors").rows()] == [
        *("storm", "harvest", "bridge")
    ]


def test_marks_follow_chosen_columns_under_a_prefix(filled: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "marked.parquet"

    filled.succeed("export", "--columns", "id", "--mark", "--mark-prefix", "n_", "--output", path, "--quiet")

    table = pyarrow.parquet.read_table(path)
    assert table.schema.equals(
        pyarrow.schema(
            {
                "id": pyarrow.string(),
                "n_duplicate_of": pyarrow.string(),
                "n_cluster": pyarrow.int64(),
                "n_cluster_size": pyarrow.int64(),
                "n_similarity": pyarrow.float64(),
            }
        )
    )
    assert table.column("n_cluster_size").to_pylist() == [3, 3, 3, 1, 1]


@pytest.mark.parametrize("output", ["marked.jsonl", "marked.csv"])
def test_attributes_named_like_a_mark_are_refused(nearsim: CommandLine, tmp_path: Path, output: str) -> None:
    rows: list[dict[str, object]] = [
        {"id": "a", "text": STORM, "similarity": 3},
        {"id": "b", "text": HARVEST},
    ]
    nearsim.succeed("ingest", write_jsonl(tmp_path / "in.jsonl", rows), "--quiet")

    refused = nearsim.fail("export", "--mark", "--output", tmp_path / output)

    assert "'similarity' already" in refused and "--mark-prefix" in refused
    assert not (tmp_path / output).exists()
    nearsim.succeed("export", "--mark", "--mark-prefix", "n_", "--output", tmp_path / output, "--quiet")


def test_marks_in_python(database_url: str, tmp_path: Path) -> None:
    with Index.connect(database_url) as index:
        index.add([("a", STORM), ("b", STORM_AGAIN)])
        index.export(tmp_path / "marked.jsonl", keep="all", columns=["id"], mark_prefix="")
        with pytest.raises(InputError, match="'cluster' already"):
            index.export(tmp_path / "marked.jsonl", columns=["cluster"], mark_prefix="")

    rows = [json.loads(line) for line in (tmp_path / "marked.jsonl").read_text().splitlines()]
    assert [(row["id"], row["duplicate_of"], row["cluster_size"]) for row in rows] == [
        ("a", None, 2),
        ("b", "a", 2),
    ]


def test_a_prefix_without_marks_is_refused(filled: CommandLine) -> None:
    assert "--mark-prefix requires --mark" in filled.fail("export", "--mark-prefix", "n_", exit_code=2)
