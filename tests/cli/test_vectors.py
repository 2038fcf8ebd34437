"""Vectors on the command line: in documents and in separate files of every format."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.vector_world import made_up

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
