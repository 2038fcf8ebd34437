"""Output for pairs with a distance, and for metrics that count no features."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from tests.builders.command_line import STORM, STORM_AGAIN, CommandLine

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
