"""Nodes that ask for passwords: what the coordinator needs for other users than the one who created the extension."""

import pytest
from psycopg import sql

from nearsim_db.admin.doctor import Finding, examine
from nearsim_db.errors import UnreachableError
from tests.builders.scale_out_world import answers, documents, index_at
from tests.builders.workers import application, ask, wait_until
from tests.scale_out.conftest import close
from tests.servers.citus import CitusServer, add_node

pytestmark = pytest.mark.slow("starts a cluster")

_WORD = "INSERT INTO pg_dist_authinfo (nodeid, rolename, authinfo) VALUES (0, %s, 'password=secret')"
_REFUSED = "SELECT EXISTS (SELECT FROM pg_dist_background_task WHERE message LIKE '%no password supplied%')"
_MOVED = "SELECT EXISTS (SELECT FROM pg_dist_background_job WHERE state = 'finished')"


def _findings(check: str) -> list[Finding]:
    return [one for one in examine() if one.check == check]


def test_a_second_administrator_needs_the_password(
    closed: CitusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closed.database() as url, application(url) as chief:
        chief.execute("CREATE ROLE ada LOGIN PASSWORD 'secret'")
        chief.execute("GRANT nearsim_admin TO ada")
        own_url = url.replace("//nearsim@", "//ada@")
        monkeypatch.setenv("NEARSIM_DATABASE_URL", own_url)
        with index_at(own_url) as index, closed.plain_database() as plain, index_at(plain) as expected:
            with pytest.raises(UnreachableError, match=r"no password supplied; .*Passwords"):
                index.add(documents(60, seed=41))
            first, second = _findings("node")
            assert (first.verdict, second.verdict) == ("problem", "problem")
            assert "no password supplied" in first.finding + second.finding
            assert "pg_dist_authinfo" in first.advice
            chief.execute(_WORD, ["ada"])
            index.add(documents(60, seed=41))
            expected.add(documents(60, seed=41))
            assert answers(index) == answers(expected)
            assert [one.verdict for one in _findings("node")] == ["ok", "ok"]


def test_the_doctor_names_roles_that_a_node_lacks(
    closed: CitusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closed.database() as url, application(url) as chief:
        monkeypatch.setenv("NEARSIM_DATABASE_URL", url)
        chief.execute("CREATE ROLE bert LOGIN")
        chief.execute("GRANT nearsim_writer TO bert")
        assert not _findings("node roles")
        with application(closed.coordinator.dsn("postgres")) as elsewhere:
            elsewhere.execute("CREATE ROLE cleo LOGIN IN ROLE nearsim_reader")
        with application(closed.nodes[0].dsn("postgres")) as node:
            node.execute("REVOKE nearsim_writer FROM bert")
        first, second = _findings("node roles")
        commands = ["CREATE ROLE cleo LOGIN", "GRANT nearsim_reader TO cleo"]
        assert second.advice.endswith(": " + "; ".join(commands))
        commands.insert(2, "GRANT nearsim_writer TO bert")
        assert first.advice.endswith(": " + "; ".join(sorted(commands)))
        for server, finding in zip(closed.nodes, (first, second), strict=True):
            with application(server.dsn("postgres")) as node:
                node.execute(sql.SQL(finding.advice.partition(": ")[2]))
        assert not _findings("node roles")


def test_a_node_is_added_with_a_password_for_the_owner_of_shards(closed: CitusServer) -> None:
    closed.start_nodes(3)
    close(closed.nodes[2])
    with closed.database(nodes=2) as url, application(url) as chief, index_at(url) as index:
        index.add(documents(60, seed=42))
        before = answers(index)
        add_node(chief, closed.nodes[2].socket_directory)
        chief.execute("ALTER ROLE nearsim_admin LOGIN PASSWORD 'secret'")
        chief.execute("SELECT citus_rebalance_start()")
        wait_until(chief, _REFUSED)
        chief.execute("SELECT citus_rebalance_stop()")
        chief.execute(_WORD, ["nearsim_admin"])
        chief.execute("SELECT citus_rebalance_start()")
        wait_until(chief, _MOVED)
        shards = "SELECT count(DISTINCT nodename) FROM citus_shards WHERE table_name::text ~ 'band_shared'"
        assert ask(chief, shards) == 3
        chief.execute("ALTER ROLE nearsim_admin NOLOGIN PASSWORD NULL")
        chief.execute("DELETE FROM pg_dist_authinfo WHERE rolename = 'nearsim_admin'")
        assert answers(index) == before
