"""Vectors on the command line: in documents and in separate files of every format."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.vector_world import Pairs, alike, made_up

VECTORS = made_up(directions=5)
NAMES = list(VECTORS)
RECIPE = """
sketch = {family = "hyperplane", input = "vector", k = 1024}
bands = {count = 128, rows = 8}
match = {threshold = 0.9, bucket_limit = 0}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe that compares vectors."""
    path = tmp_path / "vectors.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """The documents without their vectors."""
    return write_jsonl(tmp_path / "plain.jsonl", ({"id": name, "text": f"text of {name}"} for name in NAMES))


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """The documents with their vectors."""
    return write_jsonl(
        tmp_path / "whole.jsonl", ({"id": name, "vector": VECTORS[name].tolist()} for name in NAMES)
    )


def matrix(tmp_path: Path, names: list[str]) -> Path:
    path = tmp_path / "vectors.npy"
    np.save(path, np.array([VECTORS[name] for name in names]))
    return path


def table(tmp_path: Path, names: list[str], **more: Any) -> Path:
    path = tmp_path / "table.parquet"
    vectors = pyarrow.array([VECTORS[name].tolist() for name in names], pyarrow.list_(pyarrow.float32(), 24))
    pyarrow.parquet.write_table(pyarrow.table({"id": names, "vector": vectors, **more}), path)
    return path


def pairs(nearsim: CommandLine, collection: str) -> Pairs:
    rows = nearsim.succeed("pairs", "-c", collection, "--format", "jsonl").rows()
    return {(min(one["left"], one["right"]), max(one["left"], one["right"])) for one in rows}


@pytest.mark.slow("several builds")
def test_every_way_to_give_vectors_gives_the_same_pairs(
    nearsim: CommandLine, tmp_path: Path, recipe: Path, plain: Path, whole: Path
) -> None:
    table(tmp_path, NAMES).rename(tmp_path / "documents.parquet")
    shuffled = sorted(NAMES, key=lambda name: name[::-1])
    ways: dict[str, list[Path | str]] = {
        "jsonl": [whole],
        "parquet": [tmp_path / "documents.parquet"],
        "npy": [plain, "--vectors", matrix(tmp_path, NAMES)],
        "table": [plain, "--vectors", table(tmp_path, shuffled)],
    }
    for collection, arguments in ways.items():
        nearsim.succeed("profile", "create", "default", "-c", collection, "--recipe", recipe)
        summary = nearsim.succeed("ingest", *arguments, "-c", collection, "--json").document()
        assert (summary["inserted"], summary["rejected"]) == (len(NAMES), 0)
        assert pairs(nearsim, collection) == alike(VECTORS)
    partial = table(tmp_path, NAMES[2:])
    said = nearsim.succeed("ingest", plain, "--vectors", partial, "-c", "partial", "--quiet").err
    assert "2 documents have no vector" in said
    stored = nearsim.succeed("get", "v1-1", "-c", "table").document()
    assert np.array(stored["vector"], np.float32).tolist() == VECTORS["v1-1"].tolist()


def test_dedupe_by_vectors_keeps_lines_unchanged(
    nearsim: CommandLine, tmp_path: Path, recipe: Path, plain: Path, whole: Path
) -> None:
    ways: dict[str, tuple[Path, list[Path | str]]] = {
        "beside": (plain, ["--vectors", matrix(tmp_path, NAMES)]),
        "within": (whole, []),
    }
    kept = {}
    for name, (given, beside) in ways.items():
        output = tmp_path / f"{name}.jsonl"
        nearsim.succeed("dedupe", given, *beside, "--recipe", recipe, "--output", output, "--quiet")
        lines = given.read_text().splitlines()
        kept[name] = [json.loads(line)["id"] for line in output.read_text().splitlines()]
        assert [
            line for line in lines if json.loads(line)["id"] in kept[name]
        ] == output.read_text().splitlines()
    assert kept["beside"] == kept["within"]
    assert 5 <= len(kept["within"]) < len(NAMES)


def test_check_by_vectors(nearsim: CommandLine, tmp_path: Path, recipe: Path, whole: Path) -> None:
    nearsim.succeed("profile", "create", "default", "--recipe", recipe)
    nearsim.succeed("ingest", whole, "--quiet")
    asked = write_jsonl(tmp_path / "asked.jsonl", [{"id": "new", "text": "a text"}])
    answer = nearsim.succeed(
        "check", asked, "--vectors", matrix(tmp_path, ["v0-0"]), "--format", "jsonl", "--quiet"
    ).rows()[0]
    near = {right if left == "v0-0" else left for left, right in alike(VECTORS) if "v0-0" in (left, right)}
    assert {one["id"] for one in answer["matches"]} == {"v0-0", *near}
    for command in ("check", "similar"):
        said = nearsim.fail(command, "--text", "a text")
        assert "profile 'default' compares vectors, and this text has none" in said
    similar = nearsim.succeed("similar", "v0-0", "--format", "jsonl", "--quiet").rows()
    assert {one["id"] for one in similar} == near
