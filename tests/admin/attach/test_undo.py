"""Tables that cannot be attached, and a failed attach, which leaves nothing behind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.admin import attach
from nearsim_db.admin.attach import undo_if_failed
from nearsim_db.errors import BuildStoppedError, ConflictError, InputError, NearsimError
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Engine
from tests.builders.followed_table import COLUMNS, PLAIN, RECIPE, TRIGGERS, attached, pairs
from tests.builders.logins import as_user
from tests.builders.workers import Application, ask

LEFT_BEHIND = """
SELECT concat_ws(', ', (SELECT string_agg(name, ' ') FROM nearsim.collection),
    (SELECT string_agg(name, ' ') FROM nearsim.profile), (SELECT string_agg(external_id, ' ') FROM nearsim.document),
    (SELECT string_agg(id_column, ' ') FROM nearsim_index.attachment),
    (SELECT string_agg(state, ' ') FROM nearsim.generation),
    (SELECT string_agg(DISTINCT generation_id::text, ' ') FROM nearsim.signature),
    (SELECT string_agg(DISTINCT generation_id::text, ' ') FROM nearsim.band),
    (SELECT string_agg(relname, ' ') FROM pg_class
        WHERE relnamespace = 'nearsim_index'::regnamespace AND relname ~ '_[0-9]+$'))
"""
STATEMENTS = 400  # more than an attach executes


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, number: int) -> Iterator[Callable[[], int]]:
    """Make one statement of this process fail, and count the statements."""
    execute, count = psycopg.Cursor.execute, 0

    def counted(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count == number:
            return execute(cursor, b"SELECT 1 / 0")
        return execute(cursor, query, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", counted)
        yield lambda: count


def attach_story(database: Database, collection: str | None = None) -> None:
    """Attach the table and index its rows, as the command does."""
    attached = attach.attach_table(database, "story", COLUMNS, collection)
    with undo_if_failed(database, attached), Index(database, attached.collection) as index:
        attach.ingest_table(index, "default", RECIPE)


def numbers(step: int) -> list[int]:
    """Every statement, or every n-th."""
    return list(range(1, STATEMENTS, step))


@pytest.mark.usefixtures("either_tables")
@pytest.mark.parametrize(
    "step", [53, pytest.param(1, marks=pytest.mark.slow("fails at each of 300 statements"))]
)
def test_failure_of_any_statement_leaves_nothing_behind(
    database: Database, app: Application, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    succeeded = 0
    for number in numbers(step):
        try:
            with failing(monkeypatch, number) as count:
                attach_story(database)
        except NearsimError:
            assert (ask(app, LEFT_BEHIND), ask(app, TRIGGERS)) == ("", ""), number
            continue
        succeeded += 1
        assert len(pairs(Index(database, "story"))) == 20, number
        attach.detach(database, "story", keep=False)
        if count() < number:
            break
    else:
        raise AssertionError(f"an attach executes more than {STATEMENTS} statements")
    assert succeeded


def test_existing_collection_is_unchanged(
    database: Database, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Index(database, "kept")
    kept.create_profile("own", Recipe())
    before = ask(app, "SELECT string_agg(concat(profile, generation_id), '') FROM nearsim.generations")
    with pytest.raises(NearsimError, match="division by zero"), failing(monkeypatch, 120):
        attach_story(database, "kept")
    assert ask(app, TRIGGERS) == ""
    assert ask(app, "SELECT count(*) FROM nearsim.document") == 0
    assert ask(app, "SELECT count(*) FROM nearsim_index.attachment") == 0
    assert (
        ask(app, "SELECT string_agg(concat(profile, generation_id), '') FROM nearsim.generations") == before
    )


def test_resumable_attachments_are_kept(database: Database, app: Application) -> None:
    attached = attach.attach_table(database, "story", COLUMNS)
    with pytest.raises(BuildStoppedError), undo_if_failed(database, attached):
        raise BuildStoppedError(1, "paused", "nearsim reindex resume")
    with pytest.raises(KeyboardInterrupt), undo_if_failed(database, attached):
        raise KeyboardInterrupt
    assert ask(app, "SELECT count(*) FROM nearsim_index.attachment") == 1
    with (
        pytest.raises(NearsimError),
        undo_if_failed(database, attach.attach_table(database, "story", COLUMNS)),
    ):
        raise NearsimError("an attachment that existed before stays")
    assert ask(app, "SELECT count(*) FROM nearsim_index.attachment") == 1
    attach_story(database)
    assert len(pairs(Index(database, "story"))) == 20


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
