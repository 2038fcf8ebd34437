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


def test_every_service_is_watched() -> None:
    for name, service in compose()["services"].items():
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL"), name
        assert service["image"] and ":" in service["image"], "an image without a version changes by itself"


def test_volumes_that_are_used_are_declared() -> None:
    loaded = compose()
    used = {
        volume.partition(":")[0]
        for service in loaded["services"].values()
        for volume in service.get("volumes", ())
    }
    assert used == set(loaded["volumes"])


def test_the_database_is_not_open_to_the_network_and_has_no_password_in_the_file() -> None:
    service = compose()["services"]["postgres"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")


def test_a_worker_of_this_version_waits_for_the_database_and_ends_in_its_time() -> None:
    service = compose()["services"]["worker"]
    assert service["image"] == f"nearsim:{version('nearsim-db')}"
    assert service["build"] == "." and (ROOT / "Dockerfile").is_file()
    assert service["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert service["command"][0] == "worker" and service["stop_grace_period"]
    assert "9180" in service["command"] and "9180/healthz" in service["healthcheck"]["test"][-1]


def test_the_image_holds_what_the_wheel_is_made_of() -> None:
    copied = [
        name
        for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
        if line.startswith("COPY ")
        for name in line.split()[1:-1]
    ]
    assert all((ROOT / name).exists() for name in copied)
    assert {"pyproject.toml", "README.md", "LICENSE", "nearsim_db", "migrations"} == set(copied)
