"""Verified pairs that are sorted in temporary files, a few at once."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from nearsim_db.deduplication import pairs as pairs_module
from nearsim_db.deduplication.files import dedupe
from nearsim_db.deduplication.output import Outputs
from nearsim_db.deduplication.pairs import SortedPairs
from nearsim_db.deduplication.records import EncodedRecords
from nearsim_db.readers import Source
from nearsim_db.records import Document
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.screening import Screened
from tests.builders.command_line import write_jsonl
from tests.builders.selection import some_combinations

DOCUMENTS = 30


COUNTED = Scores(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Iterator[EncodedRecords]:
    monkeypatch.setattr(pairs_module, "_PAIRS_AT_ONCE", 7)
    with EncodedRecords.under(Recipe(), 1, exact=False) as records:
        for number in range(DOCUMENTS):
            records.add([Document(str(number), None, "a text")])
        records.finish()
        yield records


def add(pairs: SortedPairs, edges: list[tuple[int, int]]) -> None:
    left, right = np.array(edges, np.int64).reshape(-1, 2).T
    counts = left * 100 + right
    guess = Scores(counts / 1e5)
    by_passage = right == left + 1
    screened = Screened(left, right, left + right, guess, len(left))
    pairs.add(screened, Scores(counts / 1e4, counts, counts + 1, by_passage=by_passage))


def shuffled_edges() -> list[tuple[int, int]]:
    """Return many pairs with the left end 3, and a few with others."""
    edges = [(3, right) for right in range(4, DOCUMENTS)]
    edges += [(left, right) for left, right in product(range(0, 20, 5), range(21, 29, 2))]
    edges += [(left, left + 1) for left in (8, 9, 28)]
    return [edges[at] for at in np.random.default_rng(1).permutation(len(edges))]


def test_pairs_are_sorted_with_their_scores(records: EncodedRecords) -> None:
    pairs, edges = SortedPairs(records, COUNTED), shuffled_edges()
    for at in range(0, len(edges), 11):
        add(pairs, edges[at : at + 11])
    pairs.finish()
    rows = np.concatenate(list(pairs.blocks()))
    assert [(row["left"], row["right"]) for row in rows] == sorted(edges)
    assert max(map(len, pairs.blocks())) == 7
    assert (len(pairs), pairs.has_counts, pairs.has_distances) == (len(edges), True, False)
    for row in rows:
        count = row["left"] * 100 + row["right"]
        assert (row["intersection"], row["union"], row["shared_bands"]) == (
            count,
            count + 1,
            sum(row.item()[:2]),
        )
        assert (row["similarity"], row["estimate"]) == (count / 1e4, np.float32(count / 1e5))
    ties = np.concatenate([own for own, _ in pairs.ties()])
    assert [tuple(tie) for tie in ties.tolist()] == [pair for pair in sorted(edges) if pair[1] > pair[0] + 1]


def test_similarities_are_those_of_pairs(records: EncodedRecords) -> None:
    pairs, edges = SortedPairs(records, COUNTED), shuffled_edges()
    add(pairs, edges)
    pairs.finish()
    sought = [*edges[::3], (0, 1), (3, 3), (28, 30), *edges[::-4]]
    left, right = np.array(sought).T
    expected = [(one * 100 + other) / 1e4 if (one, other) in edges else None for one, other in sought]
    found = [None if np.isnan(one) else one for one in pairs.similarities(left, right).tolist()]
    assert found == expected


def test_none_are_none(records: EncodedRecords) -> None:
    pairs = SortedPairs(records, COUNTED)
    add(pairs, [])
    pairs.finish()
    assert list(pairs.blocks()) == list(pairs.ties()) == []
    assert np.isnan(pairs.similarities(np.array([1]), np.array([2]))).all()


@some_combinations(
    (
        "changes",
        [
            [],
            ["cluster.keep=central"],
            ["cluster.linkage=average"],
            ["cluster.linkage=representative", "cluster.keep=central"],
            ["cluster.numbers_differ=keep-apart"],
        ],
    ),
    ("against", [False, True]),
)
def test_parts_of_any_size_have_the_same_result(
    changes: list[str], against: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = override(Recipe(), ["match.threshold=0.4", "shingle.k=2", *changes])
    texts = [
        " ".join(f"{chr(97 + family)}{chr(97 + at)}" for at in range(member % 3, 16 + member % 5))
        for family, member in product(range(9), range(9))
    ]
    write_jsonl(
        tmp_path / "in.jsonl", ({"id": str(at), "text": f"{text} {at % 3}"} for at, text in enumerate(texts))
    )
    write_jsonl(tmp_path / "old.jsonl", ({"id": str(at), "text": text} for at, text in enumerate(texts[::4])))
    others = [Source([tmp_path / "old.jsonl"])] if against else []

    def result() -> list[bytes]:
        outputs = Outputs(
            tmp_path / "unique.jsonl", tmp_path / "pairs", None if against else tmp_path / "clusters"
        )
        dedupe(Source([tmp_path / "in.jsonl"]), recipe, outputs, against=others)
        return [path.read_bytes() for path in (outputs.unique, outputs.pairs, outputs.clusters) if path]

    whole = result()
    monkeypatch.setattr(pairs_module, "_PAIRS_AT_ONCE", 5)
    assert result() == whole
    assert whole[0].count(b"\n") < len(texts)
    assert whole[1].count(b"\n") > 50
