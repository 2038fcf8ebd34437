"""Tables that cannot be attached, and operations that attached collections refuse."""

from collections.abc import Callable
from functools import partial

import pytest

from nearsim_db import Document, Index
from nearsim_db.admin import attach
from nearsim_db.errors import ConflictError, InputError, NearsimError
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Engine
from tests.builders.followed_table import COLUMNS, PLAIN, attached
from tests.builders.logins import as_user
from tests.builders.workers import Application, ask

REFUSED = (
    "CREATE VIEW other AS SELECT * FROM story",
    "CREATE MATERIALIZED VIEW other AS SELECT * FROM story",
    "CREATE TABLE other (id int, body text)",
    "CREATE TABLE other (id int, at int, body text, PRIMARY KEY (id, at))",
    "CREATE TABLE other (id int, body text); CREATE UNIQUE INDEX ON other (id) WHERE id > 3",
    "CREATE TABLE other (id int, body text); CREATE UNIQUE INDEX ON other ((id + 1))",
    "CREATE TABLE other (id int, body text, PRIMARY KEY (id, body)) PARTITION BY LIST (body)",
    "CREATE TABLE other (id numeric PRIMARY KEY, body text)",
    "CREATE TABLE other (id int PRIMARY KEY, body jsonb)",
    "CREATE TABLE other (id int PRIMARY KEY, text text)",
    "CREATE TABLE other (id int PRIMARY KEY, body text); CREATE TABLE child () INHERITS (other)",
    "CREATE TABLE nearsim.other (id int PRIMARY KEY, body text)",
)


def test_tables_that_cannot_be_attached(app: Application, database: Database) -> None:
    for table in REFUSED:
        app.execute(table.encode())
        with pytest.raises(NearsimError):
            attach.attach_table(database, "other", Columns("id", "body"))
        app.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; DROP TABLE IF EXISTS nearsim.other")
        app.execute(PLAIN.encode())
    assert ask(app, "SELECT count(*) FROM nearsim.collection") == 0


def test_invalid_calls_are_refused(app: Application, database: Database) -> None:
    for table in ("nearsim.document", "pg_catalog.pg_class", "nowhere.story", "a b.c.d"):
        with pytest.raises(NearsimError):
            attach.attach_table(database, table, Columns("oid", "relname"))
    with pytest.raises(InputError, match="'seen'"):
        attach.attach_table(database, "story", Columns("id", "body", published_at="seen"))
    Index(database, "full").add([Document("a", body="b")])
    with pytest.raises(ConflictError):
        attach.attach_table(database, "story", COLUMNS, "full")
    attached(database)
    app.execute("CREATE TABLE other (id int PRIMARY KEY, body text)")
    with pytest.raises(ConflictError):
        attach.attach_table(database, "other", Columns("id", "body"), "story")
    with pytest.raises(ConflictError):
        attach.ingest_table(Index(database, "story"), "default", Recipe())


def test_missing_rights(database_url: str, engine: Engine, app: Application) -> None:
    app.execute("CREATE ROLE keeper LOGIN IN ROLE nearsim_admin")
    try:
        url = as_user(engine.url, "keeper")
        with Database.connect(url) as database:
            with pytest.raises(InputError):
                attach.attach_table(database, "story", COLUMNS)
            app.execute("ALTER TABLE story OWNER TO keeper; ALTER TABLE story ENABLE ROW LEVEL SECURITY")
            attach.attach_table(database, "story", COLUMNS)
            attach.detach(database, "story", keep=False)
            app.execute("ALTER TABLE story FORCE ROW LEVEL SECURITY")
            with pytest.raises(InputError):
                attach.attach_table(database, "story", COLUMNS)
            app.execute("ALTER TABLE story DISABLE ROW LEVEL SECURITY; REVOKE SELECT ON story FROM keeper")
            with pytest.raises(InputError, match="GRANT SELECT"):
                attach.attach_table(database, "story", COLUMNS)
    finally:
        app.execute("DROP OWNED BY keeper CASCADE; DROP ROLE keeper")


def test_documents_of_an_attached_collection_are_read_only(story: Index, app: Application) -> None:
    writes: list[Callable[[], object]] = [
        partial(story.add, [Document("x", body="y")]),
        partial(story.add, [Document("x", body="y")], "skip"),
        partial(story.delete, ["3"]),
        partial(story.purge, ["3"]),
    ]
    for refused in writes:
        with pytest.raises(ConflictError, match="story"):
            refused()
    app.execute("DELETE FROM story WHERE id = 3")
    assert story.purge(["3"]).deleted == ["3"]
