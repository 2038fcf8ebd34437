"""Vectors on the command line, and distances in its output."""

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.builders.command_line import STORM, STORM_AGAIN, CommandLine, write_jsonl
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


BAG = ["--set", "shingle.scheme=bag"]
EUCLIDEAN = [*BAG, "--set", "sketch.family=projection", "--set", "match.threshold=2"]


def words(text: str) -> Counter[str]:
    """Counts of the words of a text."""
    return Counter(text.casefold().split())


def distance(left: str, right: str) -> float:
    """The Euclidean distance of the counts of words."""
    a, b = words(left), words(right)
    return math.dist([a[one] for one in {*a, *b}], [b[one] for one in {*a, *b}])


def test_distances_are_shown_if_the_metric_has_one(
    nearsim: CommandLine, stories: Path, tmp_path: Path
) -> None:
    nearsim.succeed("profile", "create", "default", *EUCLIDEAN, "-q")
    nearsim.succeed("ingest", stories, "-q")
    apart = pytest.approx(distance(STORM, STORM_AGAIN))
    rows = nearsim.succeed("pairs", "--format", "jsonl").rows()
    assert {(row["left"], row["right"]): row["distance"] for row in rows} == {
        ("storm", "storm-again"): apart,
        ("storm-again", "storm-twin"): apart,
        ("storm", "storm-twin"): 0,
    }
    for row in rows:
        assert row["similarity"] == pytest.approx(1 / (1 + row["distance"]))
        assert row["intersection"] is row["union"] is None
    heading, _, first, *_ = nearsim.succeed("similar", "storm").out.splitlines()
    assert heading.split()[-1] == "distance" and first.split()[-1] == "0.0000"
    for command in (["similar", "--text", STORM], ["similar", "storm-again"]):
        found = nearsim.succeed(*command, "--format", "jsonl").rows()
        assert len(found) > 1 and all("distance" in one for one in found)
    (answer,) = nearsim.succeed("check", "--text", STORM_AGAIN, "--format", "jsonl").rows()
    assert {one["id"]: one["distance"] for one in answer["matches"]} == {
        "storm-again": 0,
        "storm": apart,
        "storm-twin": apart,
    }
    path = tmp_path / "pairs.jsonl"
    nearsim.succeed("dedupe", stories, "-o", tmp_path / "unique.jsonl", "--pairs", path, *EUCLIDEAN, "-q")
    written = [json.loads(line) for line in path.read_text().splitlines()]
    for one in written:
        del one["left_place"], one["right_place"]
    shown = nearsim.succeed("pairs", "--format", "jsonl").rows()
    assert sorted(sorted(map(str, one.items())) for one in written) == sorted(
        sorted(map(str, one.items())) for one in shown
    )
