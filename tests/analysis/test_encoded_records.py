"""The memory of what is read from the temporary files of encoded records."""

import sys
from pathlib import Path

import pytest

from nearsim_db.analysis.encoded_records import EncodedRecords
from nearsim_db.records import Document
from nearsim_db.similarity.recipe import Recipe

DOCUMENTS, WORDS = 200, 5_000
FEATURE_BYTES = 8 * DOCUMENTS * WORDS


def mapped_bytes() -> int:
    """Return how much of mapped files is in the memory of this process."""
    status = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in status if line.startswith(("RssFile", "RssShmem")))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_memory_of_features_is_given_back() -> None:
    with EncodedRecords.under(Recipe(), 1, exact=False) as records:
        for number in range(DOCUMENTS):
            words = (f"w{number * WORDS + place}" for place in range(WORDS))
            records.add(Document(str(number), None, " ".join(words)))
        records.finish()
        before = mapped_bytes()
        features = records.read_features(range(DOCUMENTS))
        counts = [len(one) for one in features.values()]
        assert counts == records.counts.tolist()
        assert sum(int(one.max() > 0) for one in features.values()) == DOCUMENTS
        read = mapped_bytes()
        records.release_features()
        assert read - before > FEATURE_BYTES / 2
        assert mapped_bytes() - before < FEATURE_BYTES / 10
