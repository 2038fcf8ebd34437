"""A node that is killed or away: a clear message, nothing lost, and the same command goes on when it is back."""

import pytest

from nearsim_db.admin.doctor import Finding, examine
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.errors import DatabaseError, NearsimError
from tests.builders.scale_out_world import answers, documents, index_at
from tests.builders.selection import some
from tests.builders.server_kills import kill
from tests.builders.workers import IDLE, application, running, wait_until
from tests.servers.citus import CitusServer

pytestmark = pytest.mark.slow("kills nodes of a cluster")


@pytest.mark.parametrize("stage", some(["sign", "bands", "candidates", "clusters"], "every stage", kept=1))
def test_a_build_goes_on_when_a_killed_node_is_back(
    citus: CitusServer, urls: tuple[str, str], stage: str
) -> None:
    node, is_up = citus.nodes[0], True

    def progress(step: str, done: int, total: int | None) -> None:
        nonlocal is_up
        if is_up and step == stage:
            is_up = False
            kill(node)

    with index_at(urls[0]) as plain, index_at(urls[1], progress=progress) as cluster:
        plain.add(documents(150, seed=11))
        with pytest.raises(DatabaseError, match="node1"):
            cluster.add(documents(150, seed=11))
        assert not is_up
        node.start()
        cluster.build()
        assert answers(cluster) == answers(plain)
        assert verify_index(cluster.database, sample=None).is_sound


def test_a_worker_goes_on_when_a_node_is_back(citus: CitusServer) -> None:
    node = citus.nodes[1]
    with citus.database() as url, index_at(url) as index, application(url) as writer:
        index.add(documents(60, seed=12))
        kill(node)
        writer.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body) "
            "SELECT collection_id, 'late', body FROM nearsim.document WHERE external_id = 'd3'"
        )
        with pytest.raises(NearsimError, match="node2"):
            index.check(documents(60, seed=12)[0])
        with running(url) as worker:
            worker.wait_for_line("node2")
            node.start()
            wait_until(writer, IDLE)
        assert verify_index(index.database, sample=None).is_sound
        assert "d3" in {one.external_id for one in index.similar("late")}


def test_the_doctor_names_a_node_that_is_away(citus: CitusServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with citus.database() as url, index_at(url) as index:
        index.add(documents(60, seed=13))
        monkeypatch.setenv("NEARSIM_DATABASE_URL", url)
        assert [one.verdict for one in _nodes()] == ["ok", "ok"]
        kill(citus.nodes[0])
        first, second = _nodes()
        assert (first.verdict, second.verdict) == ("problem", "ok")
        assert "does not answer" in first.finding
        citus.nodes[0].start()
        assert [one.verdict for one in _nodes()] == ["ok", "ok"]


def _nodes() -> list[Finding]:
    return [one for one in examine() if one.check == "node"]
