"""Documents from memory."""

from datetime import UTC, datetime, timedelta, timezone

from nearsim_db.readers.memory import from_documents
from nearsim_db.records import Document, ReadDocument, Reject

EAST, WEST = timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))


def test_times_are_in_utc_and_within_its_years() -> None:
    read = list(
        from_documents(
            [
                Document("naive", published_at=datetime(2026, 3, 1)),
                Document("east", published_at=datetime(2026, 3, 1, 14, tzinfo=EAST)),
                Document("before", published_at=datetime(1, 1, 1, tzinfo=EAST)),
                Document("after", published_at=datetime(9999, 12, 31, 23, tzinfo=WEST)),
            ]
        )
    )
    made = [one.document.published_at for one in read if isinstance(one, ReadDocument)]
    assert made == [datetime(2026, 3, 1, tzinfo=UTC)] * 2
    rejected = [one for one in read if isinstance(one, Reject)]
    assert [one.external_id for one in rejected] == ["before", "after"]
    assert all("is outside the years 1 to 9999" in one.reason for one in rejected)
