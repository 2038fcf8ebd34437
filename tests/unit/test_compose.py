"""docker-compose.yml has the form that it must have; no engine is needed to say so."""

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
        volume.partition(":")[0] for service in loaded["services"].values() for volume in service["volumes"]
    }
    assert used == set(loaded["volumes"])


def test_the_database_is_not_open_to_the_network_and_has_no_password_in_the_file() -> None:
    service = compose()["services"]["postgres"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
