"""The comparison with other tools: their job, and the judgement of what they find."""

import gzip
import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import judge, shingles
from benchmarks.peers.job import Job, join
from benchmarks.processes import run_measured

pytestmark = pytest.mark.slow("a benchmark")

STORY = "one two three four five six seven eight nine ten eleven twelve"
TEXTS = [STORY, f"{STORY} more", "something else altogether here", "", STORY, f"{STORY} more and more", "a b"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps({"id": f"t{row}", "text": text}) + "\n" for row, text in enumerate(TEXTS))
    return path


def true_pairs() -> list[tuple[int, int]]:
    sets = [set(shingles.word_shingles(text)) for text in TEXTS]
    found = []
    for left, right in combinations(range(len(TEXTS)), 2):
        union = sets[left] | sets[right]
        if union and 10 * len(sets[left] & sets[right]) >= 7 * len(union):
            found.append((left, right))
    return found


def test_shingles_are_those_of_the_recipes() -> None:
    assert shingles.word_shingles("A b\t\nc  D", 3) == ["a b c", "b c d"]
    assert shingles.word_shingles("A b", 3) == ["a b"]
    assert shingles.word_shingles("", 3) == []


def test_truth_has_all_pairs_and_their_clusters(file: Path) -> None:
    truth = judge.find_truth(file)
    assert [divmod(code, len(TEXTS)) for code in truth.codes.tolist()] == true_pairs()
    assert truth.rows == {f"t{row}": row for row in range(len(TEXTS))}
    labels = truth.clusters.tolist()
    assert labels[0] == labels[1] == labels[4] == labels[5]
    assert len(set(labels)) == 4


def test_pairs_and_clusters_are_judged(file: Path) -> None:
    truth = judge.find_truth(file)
    found = np.array([(right, left) for left, right in true_pairs()[:3]] + [(2, 6)], np.int64)
    score = judge.judge_pairs(found, truth)
    assert (score.recall, score.precision) == (3 / len(truth.codes), 0.75)
    score = judge.judge_clusters(np.array([0, 0, 0, 3, 4, 4, 6]), truth)
    assert (score.recall, score.joins_found, score.joins_right) == (None, 2 / 3, 2 / 3)
    nothing = judge.judge_pairs(np.zeros((0, 2), np.int64), truth)
    assert (nothing.recall, nothing.precision, nothing.joins_found, nothing.joins_right) == (0, 1, 0, 1)


def test_survivors_are_the_first_of_their_clusters(file: Path, tmp_path: Path) -> None:
    assert join(6, [(4, 5), (0, 3), (3, 5)]) == [0, 1, 2, 0, 0, 0]
    job = Job(file, tmp_path / "out", tmp_path / "pairs.npy", None, None)
    lines, texts = job.read()
    job.finish(lines, iter(true_pairs()))
    kept = [json.loads(line)["id"] for line in job.output.read_bytes().splitlines()]
    assert kept == ["t0", "t2", "t3", "t6"] and texts == TEXTS
    assert [*map(tuple, np.load(tmp_path / "pairs.npy").tolist())] == true_pairs()


@pytest.mark.parametrize("script", ["rensa", "datasketch"])
def test_scripts_find_identical_texts(script: str, file: Path, tmp_path: Path) -> None:
    pytest.importorskip(script)
    import sys

    pairs = tmp_path / "pairs.npy"
    command = [sys.executable, "-m", f"benchmarks.peers.with_{script}", str(file), str(tmp_path / "out")]
    run_measured([*command, "--pairs", str(pairs)], {})
    assert (0, 4) in {tuple(pair) for pair in np.load(pairs).tolist()}
    _, printed = run_measured([*command, "--lookups", str(file)], {})
    assert len(json.loads(printed)) == len(TEXTS)
