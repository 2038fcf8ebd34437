"""Schemas that another role owns or has written into: installing, upgrading and connecting run nothing of it."""

from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from nearsim_db.errors import SchemaError
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.schema import revisions
from tests.builders.logins import as_user, login, user_of
from tests.builders.workers import Application, application
from tests.servers.citus import AnyServer

pytestmark = pytest.mark.each_major

# A function that shows who runs it.
SPY = """
CREATE SCHEMA own;
GRANT USAGE ON SCHEMA own TO PUBLIC;
CREATE TABLE own.seen (ran_as text);
GRANT ALL ON own.seen TO PUBLIC;
CREATE FUNCTION own.look() RETURNS text LANGUAGE sql AS
    $$INSERT INTO own.seen VALUES (current_user) RETURNING '0001'$$;
CREATE FUNCTION own.fire() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM own.look(); RETURN NEW; END$$;
CREATE FUNCTION own.end_command() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN PERFORM own.look(); END$$;
"""
# The last statement is run by its author, too, and shows that its code runs.
TRIGGER = """
CREATE SCHEMA nearsim;
CREATE TABLE nearsim.alembic_version (version_num varchar(32) PRIMARY KEY);
CREATE TRIGGER spying BEFORE INSERT ON nearsim.alembic_version FOR EACH ROW EXECUTE FUNCTION own.fire();
INSERT INTO nearsim.alembic_version VALUES ('a');
"""
VIEW = """
CREATE SCHEMA nearsim;
CREATE VIEW nearsim.alembic_version AS SELECT own.look() AS version_num;
SELECT * FROM nearsim.alembic_version
"""
POLICY = """
CREATE SCHEMA nearsim;
CREATE TABLE nearsim.alembic_version (version_num varchar(32) DEFAULT own.look());
INSERT INTO nearsim.alembic_version DEFAULT VALUES
"""
INDEX_SCHEMA = "CREATE SCHEMA nearsim_index; SELECT own.look()"
OVERLOAD: LiteralString = """
CREATE FUNCTION nearsim.unsigned(value integer) RETURNS numeric LANGUAGE sql AS 'SELECT own.look()::numeric';
SELECT nearsim.unsigned(1)
"""
OTHER_KINDS: list[LiteralString] = [
    "CREATE TYPE nearsim.mood AS ENUM ('glad'); SELECT own.look()",
    "CREATE OPERATOR nearsim.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = pg_catalog.int8eq); SELECT own.look()",
    'CREATE COLLATION nearsim.plain FROM "C"; SELECT own.look()',
    "CREATE SEQUENCE nearsim_index.numbers; SELECT own.look()",
    "CREATE TEXT SEARCH CONFIGURATION nearsim.words (COPY = pg_catalog.simple); SELECT own.look()",
]
MAKE: LiteralString = "CREATE SCHEMA nearsim; CREATE SCHEMA nearsim_index"
GIVE: LiteralString = "GRANT ALL ON SCHEMA nearsim, nearsim_index TO {0}"
TAKE: LiteralString = "REVOKE ALL ON SCHEMA nearsim, nearsim_index FROM {0}"


@pytest.fixture
def empty_url(server: AnyServer) -> Iterator[str]:
    """A database without the schema."""
    with server.empty_database() as url:
        yield url


@pytest.fixture
def stranger(empty_url: str) -> Iterator[Application]:
    """A user who may create schemas."""
    with login(empty_url) as user, application(user) as connection:
        arm(empty_url, connection)
        yield connection


def arm(url: str, user: Application) -> None:
    """Let a user create schemas, and give it the functions, in place of all that it had."""
    user.execute("DROP OWNED BY CURRENT_USER CASCADE")
    run(url, "GRANT CREATE ON DATABASE {1} TO {0}", user)
    user.execute(SPY.encode())


def run(url: str, command: LiteralString, user: Application) -> None:
    """Execute a command as the superuser, with the names of another user and of the database filled in."""
    with application(url) as admin:
        names = map(sql.Identifier, (user.info.user, user.info.dbname))
        admin.execute(sql.SQL(command).format(*names))


def assert_refused(url: str, stranger: Application, reason: str) -> None:
    """Assert that installing and connecting are refused to a superuser, and ran nothing of the stranger's."""
    ran = stranger.execute("SELECT DISTINCT ran_as FROM own.seen").fetchall()
    assert ran == [(stranger.info.user,)], "its code runs, with its own rights"
    expected = f"^{stranger.info.user} {reason}.*, so nothing was run"
    for act in (Database.initialise, Database.connect, Database.inspect):
        with pytest.raises(SchemaError, match=expected):
            act(url)
    assert stranger.execute("SELECT DISTINCT ran_as FROM own.seen").fetchall() == ran


def test_schema_of_another_role_is_refused(empty_url: str, stranger: Application) -> None:
    for commands in (TRIGGER, VIEW, POLICY, INDEX_SCHEMA):
        stranger.execute(commands.encode())
        assert_refused(empty_url, stranger, "owns the schema nearsim")
        arm(empty_url, stranger)


def test_objects_of_another_role_in_the_schema_are_refused(empty_url: str, stranger: Application) -> None:
    run(empty_url, MAKE, stranger)
    for commands in (OVERLOAD, *OTHER_KINDS):
        run(empty_url, GIVE, stranger)
        stranger.execute("SELECT own.look()")
        assert_refused(empty_url, stranger, "may create objects in the schema nearsim")
        stranger.execute(commands)
        run(empty_url, TAKE, stranger)
        assert_refused(empty_url, stranger, "owns the ")
        arm(empty_url, stranger)
    stranger.execute("DROP OWNED BY CURRENT_USER CASCADE")
    Database.initialise(empty_url)


def test_code_of_another_role_that_a_change_would_run_is_refused(
    empty_url: str, stranger: Application
) -> None:
    Database.initialise(empty_url)
    run(empty_url, "GRANT USAGE ON SCHEMA nearsim TO {0}", stranger)
    run(empty_url, "GRANT TRIGGER ON nearsim.document TO {0}", stranger)
    stranger.execute("SELECT own.look()")
    stranger.execute(
        "CREATE TRIGGER spying AFTER INSERT ON nearsim.document FOR EACH ROW EXECUTE FUNCTION own.fire()"
    )
    assert_refused(empty_url, stranger, r"owns own\.fire\(\), which a trigger of nearsim\.document calls")
    engine = open_engine(empty_url)
    with pytest.raises(SchemaError, match="a trigger of"):
        revisions.downgrade(engine, "base")
    engine.dispose()
    run(empty_url, "DROP TRIGGER spying ON nearsim.document", stranger)
    run(
        empty_url,
        "CREATE EVENT TRIGGER spying ON ddl_command_end EXECUTE FUNCTION own.end_command()",
        stranger,
    )
    assert_refused(empty_url, stranger, r"owns own\.end_command\(\), which the event trigger spying calls")
    run(empty_url, "DROP EVENT TRIGGER spying", stranger)
    Database.initialise(empty_url)


def test_other_users_use_a_schema_that_their_administrator_installed(
    empty_url: str, stranger: Application
) -> None:
    with login(empty_url) as reader:
        Database.initialise(as_user(empty_url, stranger.info.user))
        run(empty_url, "GRANT nearsim_reader TO {0}", stranger)
        with pytest.raises(SchemaError, match="owns the") as refused:
            Database.initialise(empty_url)
        assert len(str(refused.value).split()) <= 45
        with psycopg.connect(empty_url, autocommit=True) as admin:
            admin.execute(sql.SQL("GRANT nearsim_reader TO {}").format(sql.Identifier(user_of(reader))))
        assert Database.inspect(reader).revision == "0001"


def test_the_route_that_the_error_names_makes_the_schema_trusted(
    empty_url: str, stranger: Application
) -> None:
    Database.initialise(as_user(empty_url, stranger.info.user))
    with pytest.raises(SchemaError) as refused:
        Database.initialise(empty_url)
    name, database = stranger.info.user, stranger.info.dbname
    assert f"connect as {name}, or ALTER DATABASE {database} OWNER TO {name}" in str(refused.value)
    run(empty_url, "ALTER DATABASE {1} OWNER TO {0}", stranger)
    Database.initialise(empty_url)
    run(empty_url, "ALTER DATABASE {1} OWNER TO CURRENT_USER", stranger)


def test_names_are_not_resolved_through_the_search_path_of_the_database(
    empty_url: str, stranger: Application
) -> None:
    stranger.execute(
        "CREATE FUNCTION own.current_setting(text, boolean) RETURNS text LANGUAGE sql AS 'SELECT own.look()'"
    )
    run(empty_url, "ALTER DATABASE {1} SET search_path = own, pg_catalog", stranger)
    assert Database.initialise(empty_url) == "0001"
    assert stranger.execute("SELECT count(*) FROM own.seen").fetchone() == (0,)
    with psycopg.connect(empty_url) as unprepared:
        unprepared.execute("SELECT current_setting('jit', true)")
        assert unprepared.execute("SELECT ran_as FROM own.seen").fetchall() == [("nearsim",)]
