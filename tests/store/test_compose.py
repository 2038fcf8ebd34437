"""docker-compose.yml is valid, checked without a container engine."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]


def compose() -> dict[str, Any]:
    """The file as YAML."""
    loaded = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_every_service_has_a_health_check_and_a_version() -> None:
    for name, service in compose()["services"].items():
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL"), name
        assert service["image"] and ":" in service["image"], "an image without a version changes by itself"


def test_used_volumes_are_declared() -> None:
    loaded = compose()
    used = {
        volume.partition(":")[0]
        for service in loaded["services"].values()
        for volume in service.get("volumes", ())
    }
    assert used == set(loaded["volumes"])


def test_database_is_private_and_its_password_not_in_the_file() -> None:
    service = compose()["services"]["postgres"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")


def test_worker_has_this_version_and_waits_for_the_database() -> None:
    service = compose()["services"]["worker"]
    assert service["image"] == f"nearsim:{version('nearsim-db')}"
    assert service["build"] == "." and (ROOT / "Dockerfile").is_file()
    assert service["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert service["command"][0] == "worker" and service["stop_grace_period"]
    assert "9180" in service["command"] and "9180/healthz" in service["healthcheck"]["test"][-1]


def test_image_contains_the_sources_of_the_wheel() -> None:
    copied = [
        name
        for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
        if line.startswith("COPY ")
        for name in line.split()[1:-1]
    ]
    assert all((ROOT / name).exists() for name in copied)
    assert {"pyproject.toml", "README.md", "LICENSE", "nearsim_db", "migrations"} == set(copied)
