"""Functions of the owner of an attached table: nothing of nearsim runs them with other users' rights."""

from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Index
from nearsim_db.admin import attach
from nearsim_db.errors import InputError, NotFoundError
from nearsim_db.indexing import attached_table
from nearsim_db.records import CollectionId
from nearsim_db.store.attached import source_rows
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from tests.builders.followed_table import RECIPE
from tests.builders.logins import login, user_of
from tests.builders.selection import some
from tests.builders.workers import Application, application, ask

pytestmark = pytest.mark.each_major

# What the owner's functions and casts read: who they run as, and whether that role may read what is indexed.
SPY = """
CREATE SCHEMA own;
GRANT USAGE ON SCHEMA own TO PUBLIC;
CREATE TABLE own.seen (ran_as text, reads boolean);
GRANT ALL ON own.seen TO PUBLIC;
CREATE FUNCTION own.note() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO own.seen VALUES (current_user, has_schema_privilege('nearsim', 'USAGE'));
END
$$;
CREATE FUNCTION own.look(given text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM own.note();
    RETURN given;
END
$$;
CREATE DOMAIN own.label AS text CHECK (length(VALUE) > 0);
CREATE TYPE own.state AS ENUM ('draft', 'printed');
CREATE TABLE own.story (
    "length" bigint PRIMARY KEY, "upper" text, "reverse" own.label, "initcap" text, state own.state DEFAULT 'draft',
    made text GENERATED ALWAYS AS (own.look('generated')) STORED);
GRANT ALL ON own.story TO nearsim_admin;
CREATE FUNCTION own.text_of(own.story) RETURNS text LANGUAGE sql AS $$SELECT own.look('cast')$$;
CREATE FUNCTION own.json_of(own.story) RETURNS json LANGUAGE sql AS $$SELECT to_json(own.look('cast'))$$;
CREATE FUNCTION own.jsonb_of(own.story) RETURNS jsonb LANGUAGE sql AS $$SELECT to_jsonb(own.look('cast'))$$;
CREATE FUNCTION own.text_of(own.state) RETURNS text LANGUAGE sql AS $$SELECT own.look('cast')$$;
CREATE CAST (own.story AS text) WITH FUNCTION own.text_of(own.story) AS IMPLICIT;
CREATE CAST (own.story AS json) WITH FUNCTION own.json_of(own.story) AS IMPLICIT;
CREATE CAST (own.story AS jsonb) WITH FUNCTION own.jsonb_of(own.story) AS IMPLICIT;
CREATE CAST (own.state AS text) WITH FUNCTION own.text_of(own.state) AS IMPLICIT;
CREATE FUNCTION own.equal(own.story, own.story) RETURNS boolean LANGUAGE sql AS $$SELECT own.look('operator') = ''$$;
CREATE OPERATOR own.<> (LEFTARG = own.story, RIGHTARG = own.story, FUNCTION = own.equal);
CREATE OPERATOR own.= (LEFTARG = own.story, RIGHTARG = own.story, FUNCTION = own.equal);
INSERT INTO own.story VALUES (1, 'the storm closed the ferry for a day', 'storm', 'wire');
DELETE FROM own.seen;
"""
COLUMNS = Columns("length", "upper", title="reverse", source="initcap")
WRITES: list[LiteralString] = [
    "INSERT INTO own.story VALUES (2, 'the storm closed the ferry for a week', 'storm', 'wire', 'printed')",
    "UPDATE own.story SET {text} = 'the storm closed the ferry for a year'",
    "DELETE FROM own.story WHERE {id} = 2",
]


@pytest.fixture
def owner(database_url: str) -> Iterator[Application]:
    """The session of a user without rights in nearsim, whose table is attached."""
    with application(database_url) as admin, login(database_url) as user:
        name = sql.Identifier(user_of(user))
        database = sql.Identifier(admin.info.dbname)
        admin.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(database, name))
        with application(user) as connection:
            connection.execute(SPY.encode())
            yield connection


def change_role(database_url: str, owner: Application, command: LiteralString) -> None:
    """Run a command of a superuser that names the owner, and the database."""
    with application(database_url) as superuser:
        names = {"owner": owner.info.user, "database": superuser.info.dbname}
        parts = {name: sql.Identifier(value) for name, value in names.items()}
        superuser.execute(sql.SQL(command).format(**parts))


TRUST: LiteralString = "GRANT nearsim_admin TO {owner}"
DISTRUST: LiteralString = "REVOKE nearsim_admin FROM {owner}"
HAND_OVER: LiteralString = (
    "ALTER SCHEMA own OWNER TO CURRENT_USER; ALTER TABLE own.story OWNER TO CURRENT_USER"
)


@pytest.fixture
def story(database_url: str, owner: Application) -> Iterator[Index]:
    """The collection attached and indexed by a superuser while the owner was trusted."""
    change_role(database_url, owner, TRUST)
    with Database.connect(database_url) as database:
        result = attach.attach_table(database, "own.story", COLUMNS, "story")
        index = Index(database, result.collection)
        attach.ingest_table(index, "default", RECIPE)
        change_role(database_url, owner, DISTRUST)
        yield index


def seen(owner: Application) -> list[tuple[object, ...]]:
    """Who ran the owner's functions, and whether that role may read nearsim."""
    return owner.execute("SELECT DISTINCT ran_as, reads FROM own.seen ORDER BY ran_as").fetchall()


def write(app: Application, **names: LiteralString) -> None:
    """Insert, change and delete rows, under the current names of the columns."""
    for command in WRITES:
        parts = {kind: sql.Identifier(name) for kind, name in names.items()}
        app.execute(sql.SQL(command).format(**parts))


def test_capture_of_a_renamed_column_calls_no_function_of_its_name(
    story: Index, owner: Application, database_url: str
) -> None:
    for column in ("length", "upper", "reverse", "initcap"):
        check_capture(owner, database_url, column)
        owner.execute(f'ALTER TABLE own.story RENAME renamed TO "{column}"'.encode())
        with application(database_url) as superuser:
            superuser.execute(
                'DELETE FROM nearsim.change; DELETE FROM own.story WHERE "length" <> 1; DELETE FROM own.seen'
            )


def check_capture(owner: Application, database_url: str, column: str) -> None:
    """Writes of three sessions, one of which has a snapshot of the name before."""
    before = {"id": "length", "text": "upper"}
    after = {kind: "renamed" if name == column else name for kind, name in before.items()}
    with application(database_url) as victim, psycopg.connect(database_url) as snapshot:
        write(victim, **before)
        assert ask(victim, "SELECT count(*) FROM nearsim.change WHERE external_id = '2'") == 3
        snapshot.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        snapshot.execute("SELECT")
        owner.execute(f'ALTER TABLE own.story RENAME "{column}" TO renamed'.encode())
        for session in (snapshot, victim, owner):
            write(session, **after)
            if session is snapshot:
                snapshot.commit()
        # The function of a generated column runs as the role that writes.
        assert seen(owner) == [("nearsim", True), (owner.info.user, False)]
        owner.execute("DELETE FROM own.seen")
        # A name that is no column calls a function.
        owner.execute(sql.SQL("SELECT (story).{} FROM own.story").format(sql.Identifier(column)))
        assert seen(owner) == [(owner.info.user, False)]


BODY = "SELECT nearsim.body_of(min(doc_id)) FROM nearsim.document"
TEXT = "the storm closed the ferry for a day"
# No lock of a reader prevents these: each lets PostgreSQL call a function of the owner when it plans a read.
CHANGES: list[LiteralString] = [
    "CREATE INDEX spying ON own.story ((own.look('index') || \"upper\"))",
    "CREATE INDEX CONCURRENTLY spying ON own.story ((own.look('index') || \"upper\"))",
    'CREATE STATISTICS own.spying ON (own.look(\'statistics\') || "upper"), "reverse" FROM own.story',
    "CREATE TABLE own.child () INHERITS (own.story); CREATE INDEX ON own.child ((own.look('index') || \"upper\"))",
    "ALTER SCHEMA own RENAME TO old; CREATE SCHEMA own; GRANT USAGE ON SCHEMA own TO PUBLIC; "
    'CREATE VIEW own.story AS SELECT "length", old.look(\'view\') AS "upper" FROM old.story',
]


def test_owner_gains_nothing_between_the_check_of_the_table_and_its_read(
    story: Index, owner: Application
) -> None:
    refused = rf"table own\.story belongs to {owner.info.user}, whose code could run with this user's rights"
    for change in CHANGES:
        with story.database.engine.connect() as reading, pytest.raises(NotFoundError, match=refused):
            source = source_rows.get_source(reading, CollectionId(1))
            for command in change.split("; "):
                owner.execute(command.encode())
            source_rows.read_bodies(reading, source, [1])
    assert {ran_as for ran_as, _ in seen(owner)} <= {owner.info.user}


def test_table_of_an_owner_who_is_not_trusted_is_read_for_nobody(
    story: Index, owner: Application, database_url: str
) -> None:
    with application(database_url) as superuser, login(database_url, "nearsim_reader") as reader:
        owner.execute(sql.SQL("GRANT SELECT ON own.story TO {}").format(sql.Identifier(user_of(reader))))
        superuser.execute("INSERT INTO nearsim.change (collection_id, external_id) VALUES (1, '1')")
        refused = rf"table own\.story belongs to {owner.info.user}"
        for read in (story.sweep, lambda: story.get("1"), lambda: story.build()):
            with pytest.raises(NotFoundError, match=refused):
                read()
        with pytest.raises(InputError, match=rf"own\.story cannot be attached: {refused}"):
            attach.attach_table(story.database, "own.story", COLUMNS, "again")
        attached_table.catch_up(story.database.engine)
        assert "belongs to user_" in str(ask(superuser, "SELECT trouble FROM nearsim_index.attachment"))
        view = "UPDATE nearsim_index.attached_texts SET bodies = NULL RETURNING bodies[1]"
        with application(reader) as caller:
            caller.execute("SET nearsim.asked_documents = '{1}'")
            assert ask(superuser, BODY) is ask(caller, BODY) is ask(caller, view) is None
            change_role(database_url, owner, TRUST)
            caller.execute("SET nearsim.asked_documents = '{1}'")
            assert ask(superuser, BODY) == ask(caller, BODY) == ask(caller, view) == TEXT


def test_owner_of_the_schema_must_be_trusted_too(story: Index, owner: Application, database_url: str) -> None:
    change_role(database_url, owner, HAND_OVER)
    story.sweep()
    for refuse, allow in (
        ("ALTER SCHEMA own OWNER TO {owner}", "ALTER SCHEMA own OWNER TO pg_database_owner"),
        ("ALTER DATABASE {database} OWNER TO {owner}", "ALTER DATABASE {database} OWNER TO CURRENT_USER"),
    ):
        change_role(database_url, owner, refuse)
        with pytest.raises(NotFoundError, match=f"schema own belongs to {owner.info.user}"):
            story.sweep()
        change_role(database_url, owner, allow)
        story.sweep()


# Functions of a stranger in a table whose owner is trusted: he can replace them at any time.
PLANNED: list[LiteralString] = [
    "CREATE INDEX ON own.story ((own.look('index') || \"upper\"))",
    'CREATE INDEX ON own.story ("upper") WHERE own.look(\'predicate\') = "upper"',
    "CREATE INDEX ON own.story ((\"upper\" OPERATOR(own.<<<) 'a'))",
    'CREATE STATISTICS own.spying ON (own.look(\'statistics\') || "upper"), "reverse" FROM own.story',
    "ALTER TABLE own.story ADD CHECK (own.look(\"upper\") <> '')",
    "CREATE TABLE own.child () INHERITS (own.story); CREATE INDEX ON own.child ((own.look('index') || \"upper\"))",
]
USED = """
CREATE FUNCTION own.less(text, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
    $$BEGIN PERFORM own.note(); RETURN true; END$$;
CREATE OPERATOR own.<<< (LEFTARG = text, RIGHTARG = text, FUNCTION = own.less);
"""


@pytest.mark.parametrize("command", some(PLANNED, "every kind of code", kept=2))
def test_functions_that_planning_would_call_are_not_planned(
    story: Index, owner: Application, database_url: str, command: LiteralString
) -> None:
    owner.execute(USED.encode())
    change_role(database_url, owner, HAND_OVER)
    with application(database_url) as superuser:
        assert ask(superuser, BODY) == TEXT
        superuser.execute("INSERT INTO nearsim.change (collection_id, external_id) VALUES (1, '1')")
        superuser.execute(command)
        superuser.execute(
            "GRANT ALL ON own.story TO PUBLIC; GRANT ALL ON SCHEMA own TO PUBLIC; DELETE FROM own.seen"
        )
        owner.execute("SELECT FROM own.story WHERE upper = ''")
        ran_for_itself = seen(owner)
        assert ran_for_itself in ([(owner.info.user, False)], [])
        assert bool(ran_for_itself) == ("look('" in command or "span" in command), (
            "its code runs when planned"
        )
        reason = rf"calls own\.\S+ of {owner.info.user}, whose code could run with this user's rights"
        for read in (story.sweep, lambda: story.get("1"), lambda: story.build()):
            with pytest.raises(NotFoundError, match=reason):
                read()
        attached_table.catch_up(story.database.engine)
        assert "of user_" in str(ask(superuser, "SELECT trouble FROM nearsim_index.attachment"))
        assert ask(superuser, BODY) is None
        assert seen(owner) == ran_for_itself
        change_role(database_url, owner, "REASSIGN OWNED BY {owner} TO CURRENT_USER")
        story.sweep()
        assert ask(superuser, BODY) == TEXT


def test_table_keeps_its_definition_while_it_is_read(
    story: Index, owner: Application, database_url: str
) -> None:
    change_role(database_url, owner, TRUST)
    owner.execute("SET lock_timeout = '10ms'")
    engine = story.database.engine
    with engine.connect() as reading:
        source_rows.get_source(reading, CollectionId(1))
        with pytest.raises(psycopg.errors.LockNotAvailable):
            owner.execute('ALTER TABLE own.story RENAME "upper" TO renamed')
    with engine.snapshot() as reading:
        reading.execute("SELECT FROM nearsim.document")
        owner.execute('ALTER TABLE own.story ALTER "upper" TYPE own.label')
        with pytest.raises(NotFoundError, match="it was altered meanwhile"):
            source_rows.get_source(reading, CollectionId(1))


def test_snapshots_do_not_hide_a_change_of_type(story: Index, owner: Application, database_url: str) -> None:
    change_role(database_url, owner, TRUST)
    with psycopg.connect(database_url) as snapshot:
        snapshot.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        snapshot.execute("SELECT FROM nearsim.document")
        owner.execute("ALTER TABLE own.story ALTER \"upper\" TYPE own.state USING 'draft'")
        assert snapshot.execute(BODY).fetchall() == [(None,)]
        owner.execute("SELECT own.text_of(state) FROM own.story")
        assert {ran_as for ran_as, _ in seen(owner)} == {owner.info.user}


def test_functions_in_the_search_path_of_the_user_are_not_called(
    owner: Application, database_url: str
) -> None:
    owner.execute(
        "CREATE FUNCTION own.array_position(text[], text) RETURNS integer LANGUAGE sql AS "
        "$$SELECT length(own.look('path'))$$"
    )
    with application(database_url) as superuser:
        database = sql.Identifier(superuser.info.dbname)
        superuser.execute(sql.SQL("ALTER DATABASE {} SET search_path = own").format(database))
    change_role(database_url, owner, TRUST)
    with Database.connect(database_url) as opened:
        attach.attach_table(opened, "story", COLUMNS)
    change_role(database_url, owner, DISTRUST)
    assert seen(owner) == []
    owner.execute("SET search_path = own; SELECT array_position(ARRAY['a'], 'a'::text)")
    assert seen(owner) == [(owner.info.user, False)]
