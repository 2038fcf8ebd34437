"""The README, run from top to bottom as it is written, shows what it says."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nearsim_db.store.embedded.binaries import installed_binaries
from tests.builders.console_pages import Step, run, steps
from tests.examples.conftest import EXAMPLES
from tests.servers.homes import server_home

README = EXAMPLES.parent / "README.md"
ELSEWHERE = "db.example.org"  # commands for a server of the reader's own
STEPS = list(steps(README))

pytestmark = pytest.mark.slow("runs all commands of the README in processes of their own")


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """The environment of a reader who has activated the virtual environment, with an embedded server of his own."""
    programs = [str(Path(sys.executable).parent), os.environ["PATH"], str(installed_binaries().directory)]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NEARSIM")}
    with server_home() as home:
        yield inherited | {"NEARSIM_HOME": str(home), "PATH": os.pathsep.join(programs), "NO_COLOR": "1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has the examples, as a clone has."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "examples").symlink_to(EXAMPLES)
    return folder


def own_server(step: Step) -> bool:
    """Whether a step is one of the block about a server of the reader's own."""
    lines = README.read_text("utf-8").split("\n")
    first = next(number for number, line in enumerate(lines, 1) if ELSEWHERE in line)
    return first <= step.line < first + lines[first:].index("```") + 1


def test_readme_has_commands_of_every_kind() -> None:
    assert {step.language for step in STEPS} == {"shell", "psql", "python"} and len(STEPS) > 30


def test_readme_from_top_to_bottom(environment: dict[str, str], folder: Path) -> None:
    differ = []
    for step in STEPS:
        # A session of psql is its statements, which follow.
        if own_server(step) or step.command == 'psql "$(nearsim db url)"':
            continue
        printed = run(step, folder, environment)
        shown = [line.rstrip() for line in "\n".join(step.shown).rstrip().split("\n") if step.shown]
        if any(shown) and shown != printed:
            differ.append((step.line, step.command, printed))
    assert not differ
