"""Places of records, with their titles, sources and dates."""

from datetime import UTC, datetime

import numpy as np

from nearsim_db.readers.places import RecordPlaces
from nearsim_db.records import Document, ReadDocument


def test_records_may_lack_a_title_a_source_and_a_date() -> None:
    dated = Document("one", title="Tide", source="wire", published_at=datetime(2026, 3, 1, 12, tzinfo=UTC))
    bare = Document("two")

    with RecordPlaces() as places:
        for line, document in enumerate([dated, bare], start=1):
            places.add(ReadDocument(document, "tides.jsonl", line), line)
        columns = places.columns()

    assert columns["title"].tolist() == [4, -1]
    assert columns["source"].tolist() == [0, -1]
    assert columns["published"][0] == np.datetime64("2026-03-01T12:00", "us")
    assert np.isnat(columns["published"][1])
