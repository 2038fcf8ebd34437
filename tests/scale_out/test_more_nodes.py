"""More nodes and more processes: an index answers and is written to while shards move, and builds are the same."""

from itertools import count

import pytest

from nearsim_db.admin.verify_index import verify_index
from nearsim_db.store.citus import placement
from nearsim_db.store.embedded.cluster import PostgresCluster
from tests.builders.scale_out_world import answers, documents, index_at
from tests.builders.workers import application, ask
from tests.indexing.test_build_slices import rows_of, small_slices
from tests.servers.citus import CitusServer, add_node

pytestmark = pytest.mark.slow("starts a cluster")

_MOVING = "SELECT EXISTS (SELECT FROM pg_dist_background_job WHERE state IN ('scheduled', 'running'))"

_FAILED = "SELECT message FROM pg_dist_background_task WHERE retry_count > 0"


@pytest.fixture
def third_node(citus: CitusServer) -> PostgresCluster:
    """A node that databases created from here on do not use yet."""
    citus.start_nodes(3)
    return citus.nodes[2]


def test_shards_move_to_an_added_node_under_writes_and_lookups(
    third_node: PostgresCluster, urls: tuple[str, str]
) -> None:
    texts, written = documents(2_000, seed=20), count(100, 5)
    with index_at(urls[0]) as plain, index_at(urls[1]) as cluster, application(urls[1]) as writer:
        for index in (plain, cluster):
            index.add(texts[:100])
        add_node(writer, third_node.socket_directory)
        writer.execute("ALTER ROLE nearsim_admin LOGIN")
        writer.execute("SELECT citus_rebalance_start()")
        while ask(writer, _MOVING):
            assert not writer.execute(_FAILED).fetchall()
            first = next(written)
            for index in (plain, cluster):
                index.add(texts[first : first + 5])
            assert list(cluster.check(texts[0], 0.2)) == list(plain.check(texts[0], 0.2))
        assert 100 < next(written) < 2_000
        assert ask(writer, "SELECT state FROM pg_dist_background_job") == "finished"
        with cluster.database.transaction() as connection:
            assert [bool(one.shards) for one in placement.measure_nodes(connection)] == [True, True, True]
        writer.execute("ALTER ROLE nearsim_admin NOLOGIN")
        assert answers(cluster) == answers(plain)
        assert verify_index(cluster.database, sample=None).is_sound


def test_any_number_of_threads_builds_the_same_index(
    citus: CitusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_slices(monkeypatch, 10, 300)
    found = []
    for threads in (1, 2, 4):
        monkeypatch.setenv("NEARSIM_THREADS", str(threads))
        with citus.database() as url, index_at(url) as index:
            index.add(documents(150, seed=9))
            found.append(rows_of(url, 1))
    assert found[0]["similar_pair"]
    assert found[0] == found[1] == found[2]
