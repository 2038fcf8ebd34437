"""A commit that reached one node and not another: what is missing meanwhile, and that recovery completes it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from threading import Thread

import pytest
from psycopg.conninfo import conninfo_to_dict

from nearsim_db import Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.errors import NearsimError
from tests.builders.scale_out_world import answers, documents, index_at
from tests.builders.workers import IDLE, application, ask, running, wait_until
from tests.scale_out.half_commits import PREPARED, HalfCommit, setting
from tests.servers.citus import CitusServer

pytestmark = pytest.mark.slow("kills nodes of a cluster")


def half_commit(citus: CitusServer, url: str, skipped: int = 0) -> HalfCommit:
    """Commits of a database that do not reach its first node."""
    return HalfCommit(citus.coordinator, citus.nodes[0], str(conninfo_to_dict(url)["dbname"]), skipped)


def prepared(citus: CitusServer, url: str) -> object:
    """Transactions on the first node that were prepared and not completed."""
    with application(citus.nodes[0].dsn(str(conninfo_to_dict(url)["dbname"]))) as node:
        return ask(node, PREPARED)


def faults(index: Index) -> set[str]:
    """The kinds of faults of the index."""
    return {one.kind for one in verify_index(index.database, sample=None).found.faults}


def test_a_commit_that_missed_a_node_is_completed_by_recovery(
    citus: CitusServer, urls: tuple[str, str]
) -> None:
    old, new = documents(80, seed=14)[:60], documents(80, seed=14)[60:]
    with (
        index_at(urls[0]) as plain,
        index_at(urls[1]) as cluster,
        application(urls[1]) as writer,
        setting(citus.coordinator, "citus.recover_2pc_interval", "-1"),
    ):
        for index in (plain, cluster):
            index.add(old)
        plain.add(new)
        with half_commit(citus, urls[1]) as half, pytest.raises(NearsimError, match="node1"):
            cluster.add(new)
        assert half.is_done
        citus.nodes[0].start()
        in_doubt = prepared(citus, urls[1])
        assert in_doubt
        (seen,) = writer.execute("SELECT count(*) FROM nearsim.band").fetchall()
        assert ask(writer, "SELECT recover_prepared_transactions()") == in_doubt
        assert prepared(citus, urls[1]) == 0
        assert writer.execute("SELECT count(*) FROM nearsim.band").fetchall() > [seen]
        cluster.build()
        assert faults(cluster) == set()
        assert answers(cluster) == answers(plain)


# After the last commit over the nodes, a build ends without another statement on them.
@pytest.mark.parametrize(
    ("skipped", "ending"),
    [
        pytest.param(0, pytest.raises(NearsimError, match="node1"), id="create the table"),
        pytest.param(1, pytest.raises(NearsimError, match="node1"), id="empty the table"),
        pytest.param(2, pytest.raises(NearsimError, match="node1"), id="load the rows"),
        pytest.param(3, pytest.raises(NearsimError, match="node1"), id="create the index"),
        pytest.param(4, nullcontext(), id="attach the table"),
    ],
)
def test_a_build_whose_commit_missed_a_node_goes_on(
    citus: CitusServer,
    urls: tuple[str, str],
    own_tables: None,
    skipped: int,
    ending: AbstractContextManager[object],
) -> None:
    with index_at(urls[0]) as plain, index_at(urls[1]) as cluster:
        plain.add(documents(60, seed=15))
        with half_commit(citus, urls[1], skipped) as half, ending:
            cluster.add(documents(60, seed=15))
        assert half.is_done
        citus.nodes[0].start()
        with application(citus.nodes[0].dsn(str(conninfo_to_dict(urls[1])["dbname"]))) as node:
            wait_until(node, "SELECT NOT EXISTS (SELECT FROM pg_prepared_xacts)")
        cluster.build()
        assert faults(cluster) == set()
        assert answers(cluster) == answers(plain)


def test_a_build_in_shared_tables_waits_for_rows_whose_commit_missed_a_node(
    citus: CitusServer, urls: tuple[str, str]
) -> None:
    """Their table has its index already, so that nothing else would wait for them."""
    with (
        index_at(urls[0]) as plain,
        index_at(urls[1]) as cluster,
        setting(citus.coordinator, "citus.recover_2pc_interval", "-1"),
    ):
        plain.add(documents(60, seed=15))
        with half_commit(citus, urls[1], skipped=1) as half, pytest.raises(NearsimError, match="node1"):
            cluster.add(documents(60, seed=15))
        assert half.is_done
        citus.nodes[0].start()
        building = Thread(target=cluster.build)
        building.start()
        with application(citus.nodes[0].dsn(str(conninfo_to_dict(urls[1])["dbname"]))) as node:
            wait_until(node, "SELECT EXISTS (SELECT FROM pg_locks WHERE mode = 'ShareLock' AND NOT granted)")
        with application(urls[1]) as writer:
            assert ask(writer, "SELECT recover_prepared_transactions()")
        building.join()
        assert faults(cluster) == set()
        assert answers(cluster) == answers(plain)


def delete_some(index: Index) -> None:
    """Delete documents with copies, some of them first of their bucket."""
    index.delete([f"d{number}" for number in range(0, 60, 4)])


def edit_some(index: Index) -> None:
    """Give documents the texts of different ones."""
    index.add(documents(60, seed=20, first=0)[::4])


@pytest.mark.parametrize("change", [delete_some, edit_some])
def test_deletes_and_edits_whose_commit_missed_a_node_are_completed(
    citus: CitusServer, urls: tuple[str, str], change: Callable[[Index], None]
) -> None:
    with index_at(urls[0]) as plain, index_at(urls[1]) as cluster, application(urls[1]) as writer:
        for index in (plain, cluster):
            index.add(documents(60, seed=19))
        change(plain)
        with setting(citus.coordinator, "citus.recover_2pc_interval", "-1"):
            with half_commit(citus, urls[1]) as half, suppress(NearsimError):
                change(cluster)
            assert half.is_done
            citus.nodes[0].start()
            assert prepared(citus, urls[1])
            (seen,) = writer.execute("SELECT count(*) FROM nearsim.band").fetchall()
            writer.execute("SELECT recover_prepared_transactions()")
            assert prepared(citus, urls[1]) == 0
            assert writer.execute("SELECT count(*) FROM nearsim.band").fetchall() != [seen]
        change(cluster)
        cluster.build()
        assert faults(cluster) == set()
        changed = answers(cluster)
        assert changed == answers(plain)
        reindex = Reindex(cluster.database, "default")
        reindex.start()
        reindex.promote()
        built = answers(cluster)
        assert all(built[name] == changed[name] for name in ("pairs", "clusters", "candidates"))


def test_documents_are_searched_again_once_their_rows_are_seen(
    citus: CitusServer, urls: tuple[str, str]
) -> None:
    texts = documents(120, seed=16)
    old, hidden, later = texts[:40], texts[40:80], texts[80:]
    with index_at(urls[0]) as plain, index_at(urls[1]) as cluster, application(urls[1]) as writer:
        with setting(citus.coordinator, "citus.recover_2pc_interval", "-1"):
            for index in (plain, cluster):
                index.add(old)
            for part in (hidden, later):
                plain.add(part)
            with half_commit(citus, urls[1]), pytest.raises(NearsimError, match="node1"):
                cluster.add(hidden)
            citus.nodes[0].start()
            cluster.build()
            cluster.add(later)
            queued = "SELECT stage, error FROM nearsim.work WHERE error LIKE '%recover_prepared%'"
            assert {stage for stage, _ in writer.execute(queued)} == {"search"}
            in_doubt = prepared(citus, urls[1])
            assert in_doubt
            assert ask(writer, "SELECT recover_prepared_transactions()") == in_doubt
        writer.execute("UPDATE nearsim.work SET due_at = now()")  # up to a minute later after some attempts
        with running(urls[1]):
            wait_until(writer, IDLE)
        assert faults(cluster) == set()
        assert answers(cluster) == answers(plain)
