"""Who published first is decided by published_at, whichever document a keep policy keeps."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.selection import some

pytestmark = pytest.mark.each_major

STORY = "the council voted on tuesday to close the old swimming bath at the end of the season after years of debate"
HARVEST = "apples and pears were late this year as the frost of april had taken most of the early blossom in the valley"
NOON = datetime(2024, 5, 31, 12, tzinfo=UTC)
# id, text, source, hours after noon (None: no date)
STORIES = [
    ("late", f"{STORY} and more", "wire", 5),
    ("first", STORY, "north", 0),
    ("tie", STORY, "south", 0),
    ("undated", f"{STORY} again", "wire", None),
    ("same source", f"{STORY} now", "north", 2),
    ("no source", f"{STORY} here", None, 3),
    ("pears a", HARVEST, "wire", None),
    ("pears b", HARVEST, "north", None),
    ("alone", "nothing is like this short text of its own kind in any way at all", "wire", 1),
]


@pytest.mark.parametrize("keep", some(["longest", "latest", "earliest"], "every policy"))
def test_the_earliest_date_decides(database_url: str, keep: str) -> None:
    with Index.connect(database_url, collection="news", profile="p") as index:
        index.create_profile("p", override(Recipe(), [f"cluster.keep={keep}", "match.threshold=0.5"]))
        index.add(
            Document(
                name,
                body=text,
                source=source,
                published_at=None if at is None else NOON + timedelta(hours=at),
            )
            for name, text, source, at in STORIES
        )
        sizes = sorted(len(one.members) for one in index.clusters())
    assert sizes == [2, 6]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE nearsim.document SET published_at = '-infinity' WHERE external_id = 'undated'"
        )
        rows = connection.execute(
            "SELECT external_id, first_external_id, first_source, delay, first_elsewhere "
            "FROM nearsim.first_publications WHERE collection = 'news' AND profile = 'p'"
        ).fetchall()
    hours = {name: at for name, _, _, at in STORIES}
    assert {row[0]: row[1:] for row in rows} == {
        name: ("first", "north", None if hours[name] is None else timedelta(hours=hours[name] or 0), elsewhere)
        for name, elsewhere in [
            ("late", True), ("tie", False), ("undated", False), ("same source", False), ("no source", False),
        ]
    }  # fmt: skip
