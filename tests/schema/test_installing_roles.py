"""Servers without the roles: which users may create them, and two installations at once."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Index
from nearsim_db.admin import access
from nearsim_db.errors import DatabaseError, SchemaError
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.embedded.cluster import PostgresCluster
from nearsim_db.store.schema import baseline, revisions
from tests.builders.logins import ROLES, as_user, fill, login, user_of
from tests.servers.databases import SETTINGS
from tests.servers.homes import server_home
from tests.servers.programs import programs

pytestmark = pytest.mark.each_major

_NUMBERS = itertools.count()


class Bare:
    """A server without the roles, and databases with owners of their own."""

    def __init__(self, cluster: PostgresCluster) -> None:
        self.cluster = cluster

    def roles(self) -> set[str]:
        """The roles that exist."""
        with psycopg.connect(self.cluster.dsn("postgres")) as connection:
            rows = connection.execute(
                "SELECT rolname FROM pg_roles WHERE rolname = ANY (%s)", (ROLES,)
            ).fetchall()
        return {str(name) for (name,) in rows}

    def new_database(self, stack: ExitStack, attributes: str) -> str:
        """A new database whose owner has these attributes."""
        user = stack.enter_context(login(self.cluster.dsn("postgres"), attributes=attributes))
        name = f"bare_{next(_NUMBERS)}"
        self._run(f'CREATE DATABASE "{name}" OWNER {user_of(user)} TEMPLATE template0')
        stack.callback(self._run, f'DROP DATABASE "{name}" WITH (FORCE)')
        return as_user(self.cluster.dsn(name), user_of(user))

    def clean(self) -> None:
        """Remove the roles again."""
        self._run(f"DROP ROLE IF EXISTS {', '.join(ROLES)}")

    def _run(self, command: str) -> None:
        with psycopg.connect(self.cluster.dsn("postgres"), autocommit=True) as connection:
            connection.execute(command)


@pytest.fixture(scope="module")
def bare_cluster(major: int) -> Iterator[PostgresCluster]:
    """A separate server on which no test has created the roles."""
    with server_home() as home:
        cluster = PostgresCluster(programs()[major], home / "data", home / "socket", SETTINGS)
        cluster.initialise("bare")
        cluster.start()
        yield cluster
        cluster.stop()


@pytest.fixture
def bare(bare_cluster: PostgresCluster) -> Iterator[Bare]:
    """That server without the roles."""
    server = Bare(bare_cluster)
    assert server.roles() == set()
    yield server
    server.clean()


def install(url: str, revision: str = "head") -> None:
    """Install the schema."""
    engine = open_engine(url)
    revisions.upgrade(engine, revision)
    engine.dispose()


@pytest.mark.slow("installs several times")
def test_owner_without_createrole_installs_without_roles(bare: Bare) -> None:
    with ExitStack() as stack:
        owner = bare.new_database(stack, "")
        install(owner)
        fill(owner)
        with Database.connect(owner) as database, pytest.raises(DatabaseError, match="may not create roles"):
            access.grant(database, user_of(owner), "reader")
        assert bare.roles() == set()
        superuser = as_user(owner, "nearsim")
        reader = stack.enter_context(login(superuser))
        with Database.connect(superuser) as database:
            assert access.grant(database, user_of(reader), "reader")
        with Index.connect(reader, collection="news") as index:
            assert len(list(index.pairs())) == 1
        fill(owner, "more")
        with psycopg.connect(owner) as connection:
            assert connection.execute(
                "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class "
                "WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace)"
            ).fetchall() == [(user_of(owner),)]
        with Index.connect(reader, collection="more") as index:
            assert len(list(index.pairs())) == 1


@pytest.mark.slow("installs again")
def test_owner_with_createrole_creates_roles_and_keeps_its_rights(bare: Bare) -> None:
    with ExitStack() as stack:
        owner = bare.new_database(stack, "CREATEROLE")
        install(owner)
        assert bare.roles() == set(ROLES)
        fill(owner)
        superuser = as_user(owner, "nearsim")
        with psycopg.connect(superuser) as connection:
            assert connection.execute(
                "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class "
                "WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace)"
            ).fetchall() == [("nearsim_admin",)]
        second = stack.enter_context(login(superuser))
        with Database.connect(owner) as database:
            assert access.grant(database, user_of(second), "admin")
        fill(second)
        with Database.connect(owner) as database:
            assert access.revoke(database, user_of(second), "admin")
        engine = open_engine(owner)
        revisions.downgrade(engine, "base")
        assert bare.roles() == set()
        revisions.upgrade(engine)
        engine.dispose()
        assert bare.roles() == set(ROLES)
        fill(owner)


@pytest.mark.slow("installs several times")
def test_roles_that_an_untrusted_user_created_are_refused_to_a_superuser(bare: Bare, major: int) -> None:
    with ExitStack() as stack:
        creator, owner = bare.new_database(stack, "CREATEROLE"), bare.new_database(stack, "")
        superuser = as_user(owner, "nearsim")
        with psycopg.connect(creator, autocommit=True) as connection:
            for role in ROLES:
                connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
        if major >= 16:
            with pytest.raises(SchemaError, match=f"{user_of(creator)} controls the role nearsim_admin"):
                Database.initialise(superuser)
            with psycopg.connect(superuser, autocommit=True) as connection:
                for role in ROLES:
                    connection.execute(
                        sql.SQL("REVOKE {} FROM {}").format(
                            sql.Identifier(role), sql.Identifier(user_of(creator))
                        )
                    )
        install(superuser)
        with psycopg.connect(superuser, autocommit=True) as connection:
            connection.execute("DROP SCHEMA nearsim, nearsim_index CASCADE")


SCHEMAS = "CREATE SCHEMA nearsim {0}; CREATE SCHEMA nearsim_index {0}"
RIGHTS = "GRANT USAGE, CREATE ON SCHEMA nearsim, nearsim_index TO {0}"


@pytest.mark.parametrize("owns", [True, False], ids=["owner of the schemas", "may create in the schemas"])
@pytest.mark.slow("installs several times")
def test_existing_schemas_are_used_if_the_owner_may_not_create_them(bare: Bare, owns: bool) -> None:
    with ExitStack() as stack:
        url = bare.new_database(stack, "")
        user = user_of(url)
        superuser = as_user(url, "nearsim")
        with psycopg.connect(superuser, autocommit=True) as connection:
            database = sql.Identifier(connection.info.dbname)
            connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO nearsim").format(database))
            owner = sql.SQL("AUTHORIZATION {}").format(sql.Identifier(user)) if owns else sql.SQL("")
            connection.execute(sql.SQL(SCHEMAS).format(owner))
            connection.execute(sql.SQL(RIGHTS).format(sql.Identifier(user)))
        with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE SCHEMA other")
        install(url)
        fill(url)
        with Index.connect(url, collection="news") as index:
            assert len(list(index.pairs())) == 1
        engine = open_engine(url)
        revisions.downgrade(engine, "base")
        engine.dispose()
        install(url)
        fill(url)


@pytest.mark.slow("installs several times")
def test_concurrent_installations_in_several_databases(bare: Bare) -> None:
    folder = baseline.migrations_directory() / "schema"
    lines = (folder / "order.txt").read_text("utf-8").splitlines()
    *objects, last = [f"{line}.sql" for line in lines if line and not line.startswith("#")]
    with ExitStack() as stack:
        urls = [bare.new_database(stack, "SUPERUSER") for _ in range(3)]
        start = Barrier(len(urls))

        def install_apart(url: str) -> None:
            # Not by Alembic, which is for one thread.
            with psycopg.connect(url) as connection:
                connection.execute("CREATE SCHEMA nearsim")
                for name in objects:
                    connection.execute((folder / name).read_bytes())
                start.wait()
                connection.execute((folder / last).read_bytes())

        with ThreadPoolExecutor(len(urls)) as pool:
            list(pool.map(install_apart, urls))
        assert bare.roles() == set(ROLES)
        for url in urls:
            with psycopg.connect(url) as connection:
                assert connection.execute(
                    "SELECT pg_get_userbyid(relowner), has_table_privilege('nearsim_reader', oid, 'SELECT') "
                    "FROM pg_class WHERE oid = 'nearsim.document'::regclass"
                ).fetchall() == [("nearsim_admin", True)]
        with psycopg.connect(urls[0]) as connection:
            connection.execute((folder / "drop.sql").read_bytes())
        # The other databases still need them.
        assert bare.roles() == set(ROLES)
