"""Rights of the owner: only trigger functions run with them, and new tables get no default privileges."""

from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.admin import access
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import PARENTS
from nearsim_db.store.schema import revisions
from tests.builders.logins import ROLES, fill, login, user_of
from tests.builders.relations import identifier
from tests.builders.workers import application
from tests.schema.test_roles import refused

pytestmark = pytest.mark.each_major

DEFINERS = """
SELECT CAST(pg_proc.oid AS regprocedure)::text FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
WHERE nspname LIKE 'nearsim%' AND prosecdef AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
"""
# A role that may call a trigger function may put it on a table of its own.
CALLABLE = """
SELECT CAST(pg_proc.oid AS regprocedure)::text, rolname
FROM pg_proc JOIN pg_roles ON has_function_privilege(pg_roles.oid, pg_proc.oid, 'EXECUTE')
WHERE pronamespace = 'nearsim'::regnamespace AND prosecdef AND rolname = ANY (%s)
"""
GIVEN_AWAY: list[LiteralString] = [
    "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC, {user}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA nearsim_index GRANT SELECT ON TABLES TO PUBLIC, {user}",
    "ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO PUBLIC, {user}",
    "ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO {user}",
]
GRANTED = """
SELECT oid::regclass::text, coalesce(pg_get_userbyid(nullif(grantee, 0)), 'PUBLIC')
FROM pg_class CROSS JOIN LATERAL aclexplode(relacl)
WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace)
    AND coalesce(pg_get_userbyid(nullif(grantee, 0)), 'PUBLIC')
        NOT IN ('nearsim_reader', 'nearsim_writer', 'nearsim_admin')
    AND grantee <> relowner
"""


def give_away(connection: "psycopg.Connection[tuple[object, ...]]", user: str) -> None:
    """Grant default privileges to PUBLIC and to one user."""
    for command in GIVEN_AWAY:
        connection.execute(sql.SQL(command).format(user=sql.Identifier(user_of(user))))


def test_only_trigger_functions_run_with_the_owners_rights(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        assert connection.execute(DEFINERS).fetchall() == []
        assert connection.execute(CALLABLE, [ROLES[:2]]).fetchall() == []
        assert connection.execute(
            "SELECT count(*) > 10 FROM pg_proc WHERE pronamespace = 'nearsim'::regnamespace AND prosecdef"
        ).fetchone() == (True,)


@pytest.mark.slow("several builds")
@pytest.mark.usefixtures("own_tables")
@pytest.mark.parametrize("isolated", [False, True], ids=["open", "isolated"])
def test_new_partitions_ignore_default_privileges(database_url: str, isolated: bool) -> None:
    fill(database_url)
    own, shared = ["signature_100000002", "band_100000002"], [f"{parent}_shared" for parent in PARENTS]
    with login(database_url) as user, login(database_url, "nearsim_reader") as reader:
        name = sql.Identifier(user_of(user))
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(sql.SQL("GRANT USAGE ON SCHEMA nearsim, nearsim_index TO {}").format(name))
            give_away(connection, user)
            with Database.connect(database_url) as database:
                access.set_isolation(database, wanted=isolated)
            with Index.connect(database_url, collection="news") as index:
                index.create_profile("second", Recipe())
                index.add([Document("late", body="something else that is new")])
                index.build()
            assert connection.execute(GRANTED).fetchall() == []
            readable = connection.execute(
                "SELECT count(*) FROM pg_class WHERE relnamespace = 'nearsim_index'::regnamespace "
                "AND relkind = 'r' AND relname ~ '_([0-9]+|shared)$' AND has_table_privilege(%s, oid, 'SELECT')",
                (user_of(reader),),
            ).fetchone()
            assert readable == (2 * len(own) + len(shared),)
        with psycopg.connect(user) as connection:
            for table in (*own, *shared):
                assert refused(connection, sql.SQL("SELECT FROM {}").format(identifier(table)))


@pytest.fixture
def empty_url(database_url: str) -> Iterator[str]:
    """A database without the schema."""
    with application(database_url) as admin:
        name = f"{admin.info.dbname}_empty"
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        yield database_url.replace(f"/{admin.info.dbname}?", f"/{name}?")
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_installation_ignores_default_privileges(empty_url: str) -> None:
    with login(empty_url) as user:
        with psycopg.connect(empty_url, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA nearsim_index")
            give_away(connection, user)
        engine = open_engine(empty_url)
        revisions.upgrade(engine)
        engine.dispose()
        with psycopg.connect(empty_url) as connection:
            assert connection.execute(GRANTED).fetchall() == []
            assert connection.execute(CALLABLE, [[user_of(user)]]).fetchall() == []
