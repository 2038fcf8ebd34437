"""Growth and skew: sums over partitions, tables of figures, corpora of the promised shapes."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks import growth
from benchmarks.processes import Cost
from benchmarks.templates import BODY_WORDS

pytestmark = pytest.mark.slow("a benchmark")

DOCUMENTS = 1_000


def test_partitions_count_for_their_table() -> None:
    sizes = [("band_1", 5), ("document", 40), ("band_12", 6), ("signature_1_3", 2), ("band", 0)]
    assert growth.bytes_by_table(sizes) == {"document": 40, "band": 11, "signature": 2}


def test_ratios_are_to_a_hundred_thousand_documents() -> None:
    found = [
        growth.Ingested(
            size,
            Cost(wall, 1, 2, 3),
            {"sign": growth.Use([1, 1, 1, 4e6])},
            0,
            5e4,
            {"band": 20},
            {"first": [1]},
        )
        for size, wall in ((10_000, 1.0), (growth.BASE, 20.0), (1_000_000, 300.0))
    ]
    rows = [line.split(" | ") for line in growth.size_tables(found).splitlines()[2:5]]
    assert [row[3] for row in rows] == ["0.50", "1.00", "1.50"]
    assert [row[7] for row in rows] == ["0.40", "0.04", "0.00"]


@pytest.mark.slow("a large corpus")
def test_a_kept_corpus_is_read_and_not_written_again(tmp_path: Path) -> None:
    files = growth.corpus_files(200, 5, tmp_path)
    written = [(file.read_bytes(), file.stat().st_mtime_ns) for file in files]
    assert [len(growth.read_documents(file)) for file in files] == [200, 5]
    assert growth.corpus_files(200, 5, tmp_path) == files
    assert [(file.read_bytes(), file.stat().st_mtime_ns) for file in files] == written
    files[1].unlink()
    assert [file.read_bytes() for file in growth.corpus_files(200, 5, tmp_path)] == [
        one for one, _ in written
    ]


@pytest.mark.slow("generates five corpora")
def test_skewed_corpora_have_their_shapes() -> None:
    corpora = {name: list(one) for name, one in growth.skewed(DOCUMENTS).items()}
    assert {len(one) for one in corpora.values()} == {DOCUMENTS}
    kinds = {name: Counter(one.kind for one in corpus) for name, corpus in corpora.items()}
    assert kinds["92 % of one template"]["template"] == 920
    assert kinds["5 % with one block"]["block"] == 50
    assert kinds["plain"]["block"] == kinds["plain"]["exact"] == 0
    texts = Counter(one.text for one in corpora["2,000 exact copies"])
    assert texts.most_common(1)[0][1] == DOCUMENTS // 2
    members = [one.text.split() for one in corpora["92 % of one template"] if one.kind == "template"]
    assert {len(words) for words in members} == {len(members[0])} and len(members[0]) <= BODY_WORDS
