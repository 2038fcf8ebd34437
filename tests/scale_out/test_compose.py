"""The commands of docs/citus-compose.yml, run without a container engine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.builders.logins import as_user
from tests.builders.scale_out_world import answers, documents, index_at
from tests.builders.workers import application, ask, running
from tests.servers.citus import CitusServer

pytestmark = pytest.mark.slow("starts a cluster")

_DOCS = Path(__file__).parents[2] / "docs"
_PASSWORD = r"it's a \ secret"


def _run(*command: str | Path, **environment: str) -> str:
    settings = os.environ | environment
    ended = subprocess.run(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def test_commands_work_without_containers(closed: CitusServer) -> None:
    services = yaml.safe_load((_DOCS / "citus-compose.yml").read_text(encoding="utf-8"))["services"]
    folders = {
        "coordinator": closed.coordinator.socket_directory,
        **{f"node{number}": node.socket_directory for number, node in enumerate(closed.nodes, 1)},
    }
    programs = closed.coordinator.binaries.directory
    account = {"POSTGRES_USER": "nearsim", "POSTGRES_DB": "nearsim", "NEARSIM_WORKER_PASSWORD": _PASSWORD}
    for server in (closed.coordinator, *closed.nodes):
        with application(server.dsn("nearsim")) as connection:
            connection.execute("CREATE EXTENSION citus")
        path = f"{programs}:{os.environ['PATH']}"
        _run("sh", _DOCS / "compose-roles.sh", PGHOST=str(server.socket_directory), PATH=path, **account)
    program, *arguments = services["nodes"]["command"]
    for host, folder in folders.items():
        arguments = [one.replace(f"'{host}'", f"'{folder}'") for one in arguments]
        arguments = [one.replace(f"--host={host}", f"--host={folder}") for one in arguments]
    _run(programs / program, *arguments, PGUSER="nearsim", PGDATABASE="nearsim")
    own_url = as_user(closed.coordinator.dsn("nearsim"), "nearsim_worker")
    assert "on the nodes" in _run(
        sys.executable, "-m", "nearsim_db", "schema", "init", NEARSIM_DATABASE_URL=own_url
    )
    said = _run(sys.executable, "-m", "nearsim_db", "doctor", NEARSIM_DATABASE_URL=own_url)
    assert said.count("ok       node ") == 2 and "node roles" not in said
    with application(own_url) as connection:
        rights = "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"
        assert ask(connection, rights) is False
    with closed.plain_database() as plain, index_at(own_url) as here, index_at(plain) as there:
        for index in (here, there):
            index.add(documents(60, seed=43))
        assert answers(here) == answers(there)
    with running(own_url, *services["worker"]["command"][1:], "--once") as worker:
        assert worker.wait() == 0
