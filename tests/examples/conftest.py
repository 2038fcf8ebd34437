"""The example stories, indexed in the collection demo, and the environment of a reader who tries a page."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nearsim_db.store.embedded.binaries import installed_binaries
from tests.builders.browser import browser as browser
from tests.builders.command_line import CommandLine
from tests.builders.filled import address_of
from tests.servers.homes import server_home

EXAMPLES = Path(__file__).parents[2] / "examples"


def _fill(url: str) -> None:
    nearsim = CommandLine({"NEARSIM_DATABASE_URL": url, "NEARSIM_BACKEND": "numpy"})
    nearsim.succeed("ingest", EXAMPLES / "stories.jsonl", "--collection", "demo", "--quiet")


# A database with the stories; tests of a module share it and only read.
demo_url = address_of(_fill, "module")


@pytest.fixture
def own_environment() -> Iterator[dict[str, str]]:
    """The environment of a reader who has activated the virtual environment, with an embedded server of his own."""
    programs = [str(Path(sys.executable).parent), os.environ["PATH"], str(installed_binaries().directory)]
    # The width is that of the terminal on which a command runs.
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("NEARSIM") and name not in ("COLUMNS", "LINES")
    }
    with server_home() as home:
        yield inherited | {"NEARSIM_HOME": str(home), "PATH": os.pathsep.join(programs), "NO_COLOR": "1"}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder that has the examples, as a clone has."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    return tmp_path
