"""An attached table that logical replication fills: copied and applied rows fire the triggers."""

from collections.abc import Iterator

import psycopg
import pytest

from nearsim_db import Index
from nearsim_db.admin import attach
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from tests.builders.workers import Application, application, ask, wait_until

pytestmark = pytest.mark.each_major

TABLE = "CREATE TABLE public.story (id bigint PRIMARY KEY, body text)"
SLOT = "a_test"


@pytest.fixture
def publisher(database_url: str) -> Iterator[Application]:
    """Another database on the same server, which publishes a table with two texts in it."""
    with application(database_url) as admin:
        name = f"{admin.info.dbname}_publisher"
        admin.execute(
            psycopg.sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(psycopg.sql.Identifier(name))
        )
        with application(database_url.replace(f"/{admin.info.dbname}?", f"/{name}?")) as publisher:
            publisher.execute(TABLE.encode())
            publisher.execute("INSERT INTO story VALUES (1, 'a text for all'), (2, 'a text for all')")
            publisher.execute("CREATE PUBLICATION everything FOR TABLE story")
            publisher.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (SLOT,))
            yield publisher
            publisher.execute("SELECT pg_drop_replication_slot(%s)", (SLOT,))
        admin.execute(psycopg.sql.SQL("DROP DATABASE {} WITH (FORCE)").format(psycopg.sql.Identifier(name)))


@pytest.mark.slow("replicates")
def test_a_replicated_table_is_captured(database_url: str, publisher: Application) -> None:
    with Database.connect(database_url) as database, application(database_url) as subscriber:
        subscriber.execute(TABLE.encode())
        attach.attach_table(database, "public.story", Columns("id", "body"))
        index = Index(database, "story")
        attach.ingest_table(index, "default", None)
        info = publisher.info
        subscriber.execute(
            psycopg.sql.SQL(
                "CREATE SUBSCRIPTION taken CONNECTION {} PUBLICATION everything "
                "WITH (create_slot = false, slot_name = {})"
            ).format(f"host={info.host} port={info.port} user={info.user} dbname={info.dbname}", SLOT)
        )
        try:
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
        finally:
            subscriber.execute("ALTER SUBSCRIPTION taken DISABLE")
            subscriber.execute("ALTER SUBSCRIPTION taken SET (slot_name = NONE)")
            subscriber.execute("DROP SUBSCRIPTION taken")


def pairs(index: Index) -> set[tuple[str, str]]:
    """The pairs of the index."""
    return {(one.left, one.right) for one in index.pairs()}
