"""What is read from the temporary files of encoded records, and what memory it takes."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from nearsim_db.deduplication import pairs
from nearsim_db.deduplication.files import dedupe
from nearsim_db.deduplication.output import Outputs
from nearsim_db.deduplication.records import EncodedRecords
from nearsim_db.indexing import feature_file
from nearsim_db.readers import Source
from nearsim_db.records import Document
from nearsim_db.similarity.recipe import Recipe, from_mapping
from tests.builders.command_line import write_jsonl

DOCUMENTS, WORDS = 200, 5_000
FEATURE_BYTES = 8 * DOCUMENTS * WORDS


def mapped_bytes() -> int:
    """Return how much of mapped files is in the memory of this process."""
    status = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in status if line.startswith(("RssFile", "RssShmem")))


@pytest.mark.parametrize("mapped", [0, 1 << 28])
@pytest.mark.parametrize("family", ["minhash", "winnow"])
def test_features_and_sketches_are_those_of_each_document(
    monkeypatch: pytest.MonkeyPatch, mapped: int, family: str
) -> None:
    monkeypatch.setattr(feature_file, "_MAX_MAPPED_BYTES", mapped)
    texts = [" ".join(f"w{number * 7 + place}" for place in range(number % 9)) for number in range(1_200)]
    recipe = from_mapping({"sketch": {"family": family}})
    with EncodedRecords.under(recipe, 2, exact=False) as records:
        for number, text in enumerate(texts):
            records.add([Document(str(number), None, text)])
        records.finish()
        for numbers in ([], [1_199], [5, 6, 7, 9, 800, 801, 1_199], [801, 5, 6, 6]):
            chosen = np.array(numbers, np.int64)
            expected = records.encoder.encode([texts[number] for number in numbers], keep_features=True)
            found = records.read_features(chosen)
            assert [one.tolist() for one in found] == [one.tolist() for one in expected.features]
            assert records.read_sketches(chosen).tolist() == expected.sketches.tolist()
            assert records.feature_total(chosen) == sum(map(len, expected.features))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_large_files_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_file, "_MAX_MAPPED_BYTES", FEATURE_BYTES // 2)
    with EncodedRecords.under(Recipe(), 1, exact=False) as records:
        for number in range(DOCUMENTS):
            words = (f"w{number * WORDS + place}" for place in range(WORDS))
            records.add([Document(str(number), None, " ".join(words))])
        records.finish()
        before = mapped_bytes()
        for number in range(DOCUMENTS):
            assert len(records.read_features(np.array([number]))[0]) == records.counts[number]
        assert mapped_bytes() - before < FEATURE_BYTES / 10


def test_links_of_long_documents_are_verified_in_parts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stories = [" ".join(f"w{at // 5 + place}" for place in range(40 + at % 5)) for at in range(40)]
    file = write_jsonl(tmp_path / "in.jsonl", ({"id": at, "text": text} for at, text in enumerate(stories)))
    found = []
    for features in (pairs._FEATURES_PER_THREAD, 1):
        monkeypatch.setattr(pairs, "_FEATURES_PER_THREAD", features)
        path = tmp_path / f"pairs-{features}.jsonl"
        dedupe(Source([file]), Recipe(), Outputs(tmp_path / "unique.jsonl", pairs=path))
        found.append([json.loads(line) for line in path.read_text().splitlines()])
    assert found[0] == found[1]
    assert len(found[0]) > len(stories)
