"""An attached table that logical replication fills: copied and applied rows fire the triggers."""

from collections.abc import Iterator

import pytest

from nearsim_db import Index
from nearsim_db.admin import attach
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from tests.builders.replication import publishing, subscribed
from tests.builders.workers import Application, application, ask, wait_until

pytestmark = pytest.mark.each_major

TABLE = "CREATE TABLE public.story (id bigint PRIMARY KEY, body text)"
SLOT = "a_test"


@pytest.fixture
def publisher(database_url: str) -> Iterator[Application]:
    """Another database, with two texts in the table that it publishes."""
    rows = "INSERT INTO story VALUES (1, 'a text for all'), (2, 'a text for all')"
    with publishing(
        database_url, SLOT, TABLE, rows, "CREATE PUBLICATION everything FOR TABLE story"
    ) as publisher:
        yield publisher


@pytest.mark.slow("replicates")
def test_a_replicated_table_is_captured(database_url: str, publisher: Application) -> None:
    with Database.connect(database_url) as database, application(database_url) as subscriber:
        subscriber.execute(TABLE)
        attach.attach_table(database, "public.story", Columns("id", "body"))
        index = Index(database, "story")
        attach.ingest_table(index, "default", None)
        with subscribed(subscriber, publisher, SLOT):
            wait_until(subscriber, "SELECT count(*) = 2 FROM public.story")
            wait_until(subscriber, "SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel")
            index.build()
            assert pairs(index) == {("1", "2")}
            publisher.execute("INSERT INTO story VALUES (3, 'a text for all'), (4, 'nothing like it at all')")
            publisher.execute("UPDATE story SET body = 'nothing like it at all' WHERE id = 2")
            publisher.execute("DELETE FROM story WHERE id = 3")
            wait_until(subscriber, "SELECT sum(id) = 7 AND count(*) = 3 FROM public.story")
            index.build()
            assert pairs(index) == {("2", "4")}
            publisher.execute("TRUNCATE story")
            wait_until(subscriber, "SELECT count(*) = 0 FROM public.story")
            index.build()
            assert ask(subscriber, "SELECT count(*) FROM nearsim.document") == 0


def pairs(index: Index) -> set[tuple[str, str]]:
    """The pairs of the index."""
    return {(one.left, one.right) for one in index.pairs()}
