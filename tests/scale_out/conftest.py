"""The same collection in a plain database and on a Citus cluster; a cluster that asks for passwords."""

from collections.abc import Iterator

import pytest

from nearsim_db.store.embedded.cluster import PostgresCluster
from tests.builders.workers import application
from tests.servers.citus import CitusServer, citus_server


@pytest.fixture
def urls(citus: CitusServer, request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A plain database, and one whose band rows are on two nodes, or as many as its parameter says."""
    # First on the cluster, which creates the roles on its nodes, too.
    with (
        citus.database(nodes=getattr(request, "param", None)) as distributed,
        citus.plain_database() as plain,
    ):
        yield plain, distributed


@pytest.fixture(scope="module")
def closed() -> Iterator[CitusServer]:
    """A cluster whose nodes ask everybody but the user of the tests for a password."""
    with citus_server(2) as cluster:
        for node in cluster.nodes:
            close(node)
        yield cluster


def close(node: PostgresCluster) -> None:
    """Let a server ask everybody for a password but the user of the tests."""
    with application(node.dsn("postgres")) as session:
        rules = node.data_directory / "pg_hba.conf"
        text = rules.read_text("utf-8")
        rules.write_text(
            f"local all nearsim trust\n{text.replace('trust', 'scram-sha-256')}", encoding="utf-8"
        )
        session.execute("SELECT pg_reload_conf()")
