"""The example stories, indexed in the collection demo."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.command_line import CommandLine
from tests.servers.databases import Server

EXAMPLES = Path(__file__).parents[2] / "examples"


def _fill(url: str) -> None:
    nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_BACKEND": "numpy"})
    nearsim.succeed("ingest", EXAMPLES / "stories.jsonl", "--collection", "demo", "--quiet")


@pytest.fixture(scope="module")
def demo_url(server: Server) -> Iterator[str]:
    """A database with the stories; tests of a module share it and only read."""
    with server.database(_fill) as url:
        yield url
