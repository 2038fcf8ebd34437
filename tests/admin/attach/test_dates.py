"""Publication times of an attached table that Python's datetime cannot hold."""

import pytest

from nearsim_db import Index
from nearsim_db.admin import attach
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from tests.builders.followed_table import RECIPE
from tests.builders.selection import some
from tests.builders.workers import Application

INFINITE = {"infinity": "infinity", "-infinity": "-infinity"}
ANCIENT = {"0044-03-15 BC": "0044-03-15 00:00:00+00 BC", "10000-01-01": "10000-01-01 00:00:00+00"}
LAST = {"294276-12-31": "294276-12-31 00:00:00+00"}
DATES: dict[str, dict[str, str | None]] = {
    "timestamptz": {**INFINITE, **ANCIENT, **LAST},
    "timestamp": {**INFINITE, **ANCIENT, **LAST},
    "date": {**INFINITE, **ANCIENT, **LAST, "294277-01-01": None, "5874897-12-31": None},
    "moment": {"infinity": "infinity", "5874897-12-31": None},
}


@pytest.mark.parametrize("kind", some(list(DATES), "every type"))
def test_every_date_is_read(app: Application, database: Database, kind: str) -> None:
    app.execute("CREATE DOMAIN moment AS date")
    app.execute(f"CREATE TABLE dated (id int PRIMARY KEY, body text, at {kind})".encode())
    app.execute("SET TimeZone = 'UTC'")
    for number, date in enumerate(DATES[kind]):
        app.execute("INSERT INTO dated VALUES (%s, 'a text', %s)", (number, date))
    attached = attach.attach_table(database, "dated", Columns("id", "body", published_at="at"))
    with Index(database, attached.collection) as index:
        assert attach.ingest_table(index, "default", RECIPE).new == len(DATES[kind])
        found = [index.get(str(number))["published_at"] for number in range(len(DATES[kind]))]
    assert found == list(DATES[kind].values())
