"""docker-compose.yml, the Dockerfile and the public workflow, checked and run without a container engine."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

from docs.check_constraints import problems
from nearsim_db.store.embedded.cluster import PostgresCluster
from tests.builders.logins import as_user, fill
from tests.builders.workers import PATIENCE_SECONDS, application, running
from tests.servers.homes import server_home
from tests.servers.programs import programs

ROOT = Path(__file__).parents[2]
SOURCES = {"pyproject.toml", "README.md", "LICENSE", "nearsim_db", "migrations"}


def compose() -> dict[str, Any]:
    """The file as YAML."""
    loaded = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_services_have_versions_health_checks_and_declared_volumes() -> None:
    loaded = compose()
    services = loaded["services"]
    for name, service in services.items():
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL"), name
        assert service["image"] and ":" in service["image"], "an image without a version changes by itself"
    volumes = [one.partition(":")[0] for service in services.values() for one in service.get("volumes", ())]
    assert {one for one in volumes if not one.startswith("./")} == set(loaded["volumes"])


def test_database_is_private_and_the_worker_logs_in_as_a_role_of_its_own() -> None:
    services = compose()["services"]
    postgres, worker = services["postgres"], services["worker"]
    assert all(port.startswith("127.0.0.1:") for port in postgres["ports"])
    assert postgres["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    assert worker["image"] == f"nearsim:{version('nearsim-db')}"
    assert worker["build"] == "." and (ROOT / "Dockerfile").is_file()
    assert worker["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert worker["command"][0] == "worker" and worker["stop_grace_period"]
    assert "9180" in worker["command"] and "9180/livez" in worker["healthcheck"]["test"][-1]
    url = re.sub(r"\$\{(\w+):\?[^}]+\}", r"\1", worker["environment"]["NEARSIM_DATABASE_URL"])
    account = conninfo_to_dict(url)
    assert account["user"] == "nearsim_worker" != postgres["environment"]["POSTGRES_USER"]
    assert account["password"] == "NEARSIM_WORKER_PASSWORD"
    (script,) = (one.split(":") for one in postgres["volumes"] if one.startswith("./"))
    assert (ROOT / script[0]).is_file() and script[1].startswith("/docker-entrypoint-initdb.d/")


def test_image_contains_the_sources_of_the_wheel() -> None:
    copied = [
        name
        for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
        if line.startswith("COPY ")
        for name in line.split()[1:-1]
    ]
    assert all((ROOT / name).exists() for name in copied)
    assert {*SOURCES, "constraints.txt"} == set(copied)
    assert "--require-hashes --requirement constraints.txt" in (ROOT / "Dockerfile").read_text(
        encoding="utf-8"
    )


def test_versions_of_the_image_satisfy_the_project() -> None:
    project, constraints = (
        (ROOT / name).read_text("utf-8") for name in ("pyproject.toml", "constraints.txt")
    )
    assert list(problems(project, constraints)) == []
    pin = re.search(r"numpy==(\S+)", constraints)
    assert pin
    newer = list(problems(project.replace('"numpy>=2.0"', '"numpy>=99"'), constraints))
    assert newer == [f"numpy=={pin[1]} is not numpy>=99"]
    assert list(problems(project.replace('"numpy>=2.0"', '"left-pad>=1"'), constraints)) == [
        "left-pad>=1 is missing"
    ]
    (missing,) = set(problems(project, re.sub(r"mako==.*\n( .*\n)*", "", constraints)))
    assert missing.lower() == "mako is missing"
    for line in ("--index-url somewhere\n", "numpy==2.0\n"):
        assert list(problems(project, line + constraints)) == [f"not a version with hashes: {line.strip()!r}"]


def lint(*command: str) -> None:
    """Run a linter of the environment, which must find nothing."""
    program = Path(sys.executable).with_name(command[0])
    ended = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.slow("starts linters")
def test_linters_find_nothing() -> None:
    lint("hadolint", "Dockerfile")
    for file in ("docker-compose.yml", "docs/citus-compose.yml"):
        lint("check-jsonschema", "--builtin-schema", "vendor.compose-spec", file)
    lint("check-jsonschema", "--builtin-schema", "vendor.github-workflows", ".github/workflows/test.yml")


def test_workflow_runs_make_targets_on_all_supported_pythons() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert {"make test", "make test-all"} <= set(steps)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pythons = workflow["jobs"]["per-change"]["strategy"]["matrix"]["python"]
    assert project["requires-python"] == f">={pythons[0]}" and pythons == ["3.11", "3.12", "3.13", "3.14"]


@pytest.mark.slow("starts a server and a worker")
def test_commands_and_health_checks_work_without_containers() -> None:
    services = compose()["services"]
    settings = dict(one.split("=", 1) for one in services["postgres"]["command"][2::2])
    with server_home() as home:
        cluster = PostgresCluster(
            programs()[18],
            home / "data",
            home / "socket",
            settings | {"listen_addresses": "", "shared_buffers": "64MB"},
        )
        cluster.initialise("nearsim")
        cluster.start()
        is_ready = services["postgres"]["healthcheck"]["test"][1].split()
        subprocess.run(
            [cluster.binaries.program(is_ready[0]), *is_ready[1:]],
            env=os.environ | {"PGHOST": str(home / "socket")},
            check=True,
        )
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        arguments = [port if one == "9180" else one for one in services["worker"]["command"]]
        subprocess.run(
            ["sh", ROOT / "docs" / "compose-roles.sh"],
            env=os.environ
            | {"PGHOST": str(home / "socket"), "POSTGRES_USER": "nearsim", "POSTGRES_DB": "nearsim"}
            | {
                "NEARSIM_WORKER_PASSWORD": "it's secret",
                "PATH": f"{cluster.binaries.directory}:{os.environ['PATH']}",
            },
            check=True,
        )
        url = as_user(cluster.dsn("nearsim"), "nearsim_worker")
        subprocess.run(
            [sys.executable, "-m", "nearsim_db", "schema", "init"],
            env=os.environ | {"NEARSIM_DATABASE_URL": url},
            check=True,
        )
        with application(url) as connection:
            assert connection.execute(
                "SELECT rolsuper, rolcreaterole, pg_has_role('nearsim_admin', 'USAGE'), "
                "(SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'nearsim') "
                "FROM pg_roles WHERE rolname = current_user"
            ).fetchall() == [(False, False, True, "nearsim_admin")]
        fill(url)
        with running(url, *arguments[1:]) as worker:
            worker.wait_for_line(port)
            _, python, *code = services["worker"]["healthcheck"]["test"]
            assert python == "python"
            check = [sys.executable, *(part.replace("9180", port) for part in code)]
            deadline = time.monotonic() + PATIENCE_SECONDS
            while subprocess.run(check, stderr=subprocess.DEVNULL, check=False).returncode:
                assert time.monotonic() < deadline
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 0
        cluster.stop()


def test_nodes_of_a_cluster_are_private_and_keep_their_data() -> None:
    loaded = yaml.safe_load((ROOT / "docs" / "citus-compose.yml").read_text(encoding="utf-8"))
    services = loaded["services"]
    servers = {name: services[name] for name in ("coordinator", "node1", "node2")}
    assert [name for name, service in servers.items() if "ports" in service] == ["coordinator"]
    assert all(port.startswith("127.0.0.1:") for port in servers["coordinator"]["ports"])
    volumes = [service["volumes"] for service in servers.values()]
    assert {data.partition(":")[0] for data, _ in volumes} == set(loaded["volumes"])
    assert {script for _, script in volumes} == {
        "./compose-roles.sh:/docker-entrypoint-initdb.d/nearsim-roles.sh:ro"
    }
    for service in servers.values():
        assert service["image"].startswith("citusdata/citus:${CITUS_VERSION:-13.")
        assert service["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
        assert service["environment"]["PGPASSWORD"] == service["environment"]["POSTGRES_PASSWORD"]
        assert service["command"] == ["postgres", "-c", "wal_level=logical"]
    commands = " ".join(services["nodes"]["command"])
    assert all(f"citus_add_node('{name}', 5432)" in commands for name in ("node1", "node2"))
    page = (ROOT / "docs" / "how-to" / "scale-out.md").read_text(encoding="utf-8").replace(".example.org", "")
    documented = set(re.findall(r"citus_\w+\('(?:coordinator|node[12])', 5432\)", page))
    assert set(re.findall(r"citus_\w+\('\w+', 5432\)", commands)) == documented
    worker = services["worker"]
    assert worker["image"] == compose()["services"]["worker"]["image"] and worker["command"] == ["worker"]
    account = worker["environment"]["NEARSIM_DATABASE_URL"]
    assert account == compose()["services"]["worker"]["environment"]["NEARSIM_DATABASE_URL"].replace(
        "@postgres", "@coordinator"
    )
