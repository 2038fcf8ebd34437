"""`table attach --mark-column`: workers write, into the table, which row each duplicate row duplicates."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Index
from nearsim_db.admin import attach
from nearsim_db.errors import InputError
from nearsim_db.indexing import attached_marks
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from nearsim_db.worker.worker import Worker
from tests.builders.command_line import BRIDGE, HARVEST, STORM, STORM_AGAIN, CommandLine
from tests.builders.logins import login, user_of
from tests.builders.workers import Application, application, ask

COLUMNS = Columns("story_id", "body", mark_column="duplicate_of")
CREATE = """
    CREATE TABLE story
        (story_id integer PRIMARY KEY, tenant integer, body text, duplicate_of {type}, seen integer DEFAULT 0);
    CREATE INDEX ON story (tenant, story_id)
"""
STORIES = [(1, STORM), (2, STORM_AGAIN), (3, STORM), (4, HARVEST), (5, BRIDGE)]


def create(app: Application, kind: str = "integer") -> None:
    app.execute("SET search_path = public")
    app.execute(CREATE.replace("{type}", kind))
    app.cursor().executemany("INSERT INTO story (story_id, body) VALUES (%s, %s)", STORIES)


def marks(app: Application) -> dict[object, object]:
    query = "SELECT json_object_agg(story_id, duplicate_of) FROM story"
    return {int(story_id): duplicate_of for story_id, duplicate_of in ask(app, query).items()}


@pytest.fixture
def app(database_url: str) -> Iterator[Application]:
    with application(database_url) as connection:
        yield connection


@pytest.fixture
def nearsim(database_url: str, tmp_path: Path) -> CommandLine:
    return CommandLine({"NEARSIM_DATABASE_URL": database_url, "NEARSIM_HOME": str(tmp_path)})


def attach_story(nearsim: CommandLine, *options: str) -> None:
    names = ("--id", "story_id", "--text", "body", "--mark-column", "duplicate_of")
    nearsim.succeed("table", "attach", "public.story", *names, *options, "--quiet")


@pytest.mark.parametrize("kind", ["integer", "bigint", "text"])
def test_attach_marks_the_rows_that_exist(app: Application, nearsim: CommandLine, kind: str) -> None:
    create(app, kind)

    attach_story(nearsim)

    first = "1" if kind == "text" else 1
    expected_type = int if kind == "integer" else type(first)
    assert marks(app) == {1: None, 2: first, 3: first, 4: None, 5: None}
    assert isinstance(marks(app)[2], expected_type)
    (attached,) = nearsim.succeed("table", "list", "--json").document()
    assert attached["columns"]["mark_column"] == "duplicate_of" and attached["trouble"] is None


def test_a_worker_follows_clusters(app: Application, nearsim: CommandLine) -> None:
    create(app)
    attach_story(nearsim)

    app.execute("UPDATE story SET body = %s WHERE story_id = 2", [HARVEST])
    app.execute("DELETE FROM story WHERE story_id = 1")
    app.execute(
        "INSERT INTO story (story_id, body, duplicate_of) VALUES (6, %s, 99), (7, 'short', 99)", [STORM]
    )
    nearsim.succeed("worker", "--once")

    assert marks(app) == {2: None, 3: None, 4: 2, 5: None, 6: 3, 7: None}


def test_marks_are_no_changes_of_documents(app: Application, nearsim: CommandLine) -> None:
    create(app)
    attach_story(nearsim)
    revisions = app.execute("SELECT external_id, revision FROM nearsim.document ORDER BY 1").fetchall()

    app.execute("UPDATE story SET duplicate_of = 4")
    assert ask(app, "SELECT count(*) FROM nearsim.change") == 0
    nearsim.succeed("worker", "--once")

    assert marks(app) == {1: None, 2: 1, 3: 1, 4: None, 5: None}
    assert (
        app.execute("SELECT external_id, revision FROM nearsim.document ORDER BY 1").fetchall() == revisions
    )


def test_rows_of_each_value_have_marks_of_their_collection(app: Application, nearsim: CommandLine) -> None:
    create(app)
    app.execute("UPDATE story SET tenant = CASE WHEN story_id = 1 THEN 7 WHEN story_id < 4 THEN 8 END")

    attach_story(nearsim, "--collection-field", "tenant")

    assert marks(app) == {1: None, 2: None, 3: 2, 4: None, 5: None}


def test_locked_rows_are_marked_by_a_later_pass(
    app: Application, nearsim: CommandLine, database_url: str
) -> None:
    create(app)
    attach_story(nearsim)
    app.execute("UPDATE story SET duplicate_of = NULL")
    with Database.connect(database_url) as database:
        collection_id = ask(app, "SELECT collection_id FROM nearsim.collection")

        with psycopg.connect(database_url) as writer:
            writer.execute("UPDATE public.story SET seen = 1 WHERE story_id = 2")
            assert attached_marks.write_marks(database.engine, collection_id) is None
            assert marks(app) == {1: None, 2: None, 3: 1, 4: None, 5: None}

        assert attached_marks.write_marks(database.engine, collection_id) is None
    assert marks(app)[2] == 1


def test_a_pass_that_fails_is_reported(app: Application, nearsim: CommandLine, database_url: str) -> None:
    create(app)
    attach_story(nearsim)
    app.execute("ALTER TABLE story RENAME COLUMN duplicate_of TO copy_of")

    Worker(database_url).drain()

    (attached,) = nearsim.succeed("table", "list", "--json").document()
    assert "column 'duplicate_of' does not exist" in attached["trouble"]
    (finding,) = [
        found
        for found in nearsim.succeed("doctor", "--json").document()["checks"]
        if found["check"] == "attached tables"
    ]
    assert finding["verdict"] == "warning" and "column 'duplicate_of' does not exist" in finding["finding"]
    names = ("--id", "story_id", "--text", "body", "--mark-column", "copy_of")
    nearsim.succeed("table", "attach", "public.story", *names, "--quiet")
    (attached,) = nearsim.succeed("table", "list", "--json").document()
    assert attached["trouble"] is None


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("body", "is read as part of the documents"),
        ("day", "is of type date"),
        ("doubled", "is a generated column"),
        ("needed", "is NOT NULL"),
    ],
)
def test_unfit_columns_are_refused(app: Application, database_url: str, column: str, message: str) -> None:
    create(app)
    app.execute(
        "ALTER TABLE story ADD day date, ADD doubled integer GENERATED ALWAYS AS (story_id * 2) STORED,"
        " ADD needed integer NOT NULL DEFAULT 0"
    )

    with Database.connect(database_url) as database, pytest.raises(InputError, match=message):
        attach.attach_table(database, "public.story", Columns("story_id", "body", mark_column=column))


def test_triggers_of_untrusted_roles_never_run_with_a_workers_rights(
    app: Application, nearsim: CommandLine, database_url: str
) -> None:
    create(app)
    with login(database_url) as user:
        owner = sql.Identifier(user_of(user))
        app.execute(
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'ran'; END$$;"
            "CREATE TRIGGER note BEFORE UPDATE ON story FOR EACH ROW EXECUTE FUNCTION note()"
        )
        app.execute(sql.SQL("ALTER FUNCTION note() OWNER TO {}").format(owner))
        with (
            Database.connect(database_url) as database,
            pytest.raises(InputError, match="code would run with this user"),
        ):
            attach.attach_table(database, "public.story", COLUMNS)

        # A trigger that is added later ends the passes.
        app.execute("ALTER TABLE story DISABLE TRIGGER note; ALTER FUNCTION note() OWNER TO CURRENT_USER")
        attach_story(nearsim)
        app.execute("UPDATE story SET duplicate_of = NULL; ALTER TABLE story ENABLE TRIGGER note")
        app.execute(sql.SQL("ALTER FUNCTION note() OWNER TO {}").format(owner))
        Worker(database_url).drain()

        assert marks(app)[2] is None
        (attached,) = nearsim.succeed("table", "list", "--json").document()
        assert "calls public.note() of" in attached["trouble"]
        app.execute("DROP FUNCTION note() CASCADE")


def test_a_worker_without_the_right_to_write_says_which_it_needs(
    app: Application, nearsim: CommandLine, database_url: str
) -> None:
    create(app)
    attach_story(nearsim)
    app.execute("UPDATE story SET duplicate_of = NULL")
    with login(database_url) as user:
        name = sql.Identifier(user_of(user))
        app.execute(sql.SQL("GRANT nearsim_admin TO {0}; GRANT SELECT ON story TO {0}").format(name))
        Worker(user).drain()
        (attached,) = nearsim.succeed("table", "list", "--json").document()
        assert "GRANT UPDATE (duplicate_of) ON public.story" in attached["trouble"]

        app.execute(sql.SQL("GRANT UPDATE (duplicate_of) ON story TO {}").format(name))
        Worker(user).drain()
    assert marks(app)[2] == 1


def test_detaching_leaves_the_marks(app: Application, nearsim: CommandLine) -> None:
    create(app)
    attach_story(nearsim)

    nearsim.succeed("table", "detach", "story", "--keep", "--yes", "--quiet")

    assert marks(app)[2] == 1
    with Index.connect(nearsim.environment["NEARSIM_DATABASE_URL"], collection="story") as index:
        assert [pair.left for pair in index.pairs()]
