"""`nearsim schema init` on a coordinator by users other than the one who created the extension."""

from collections.abc import Iterator

import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from nearsim_db.store.database import Database
from tests.builders.scale_out_world import answers, documents, index_at
from tests.builders.workers import application, ask
from tests.servers.citus import CitusServer, citus_server

pytestmark = pytest.mark.slow("starts a cluster")


@pytest.fixture(scope="module")
def new_cluster() -> Iterator[CitusServer]:
    """A cluster without the roles of nearsim."""
    with citus_server(2) as cluster:
        yield cluster


@pytest.mark.parametrize(("nodes", "chosen", "shards"), [(2, None, 8), (1, None, 4), (2, 5, 5)])
def test_shards_follow_the_nodes_unless_set(
    citus: CitusServer, nodes: int, chosen: int | None, shards: int
) -> None:
    with citus.empty_database(nodes) as url, application(url) as session:
        if chosen is not None:
            name = sql.Identifier(str(conninfo_to_dict(url)["dbname"]))
            command = sql.SQL("ALTER DATABASE {} SET citus.shard_count = {}")
            session.execute(command.format(name, sql.Literal(chosen)))
        Database.initialise(url, citus="yes")
        assert (
            ask(session, "SELECT count(*) FROM citus_shards WHERE table_name = 'nearsim.band'::regclass")
            == shards
        )


# In this order: the first creates the roles of nearsim.
@pytest.mark.parametrize(
    ("user", "rights"), [("creator", "CREATEROLE"), ("chief", "SUPERUSER"), ("tenant", "NOCREATEROLE")]
)
def test_another_user_installs_and_builds(new_cluster: CitusServer, user: str, rights: str) -> None:
    name = sql.Identifier(user)
    for server in (new_cluster.coordinator, *new_cluster.nodes):
        with application(server.dsn("postgres")) as session:
            session.execute(sql.SQL("CREATE ROLE {} LOGIN {}").format(name, sql.SQL(rights)))
    with new_cluster.empty_database() as url, application(url) as session:
        database = sql.Identifier(str(conninfo_to_dict(url)["dbname"]))
        session.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(database, name))
        own_url = url.replace("//nearsim@", f"//{user}@")
        Database.initialise(own_url, citus="yes")
        with new_cluster.plain_database() as plain, index_at(own_url) as here, index_at(plain) as there:
            for index in (here, there):
                index.add(documents(60, seed=5))
            assert answers(here) == answers(there)
