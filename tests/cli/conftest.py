"""The command line on a fresh database."""

from pathlib import Path

import pytest

from tests.builders.command_line import BRIDGE, HARVEST, STORM, STORM_AGAIN, CommandLine, write_jsonl


@pytest.fixture
def nearsim(database_url: str, tmp_path: Path) -> CommandLine:
    """`nearsim` on a database with the schema and nothing else."""
    return CommandLine({"NEARSIM_DATABASE_URL": database_url, "NEARSIM_HOME": str(tmp_path / "home")})


@pytest.fixture
def stories(tmp_path: Path) -> Path:
    """Five documents: a pair, a twin of its first, and two unrelated ones."""
    texts = {
        "storm": STORM,
        "storm-again": STORM_AGAIN,
        "storm-twin": STORM,
        "harvest": HARVEST,
        "bridge": BRIDGE,
    }
    return write_jsonl(
        tmp_path / "stories.jsonl", ({"id": name, "text": text} for name, text in texts.items())
    )


@pytest.fixture
def filled(nearsim: CommandLine, stories: Path) -> CommandLine:
    """The same with the stories in its default collection."""
    nearsim.succeed("ingest", stories, "--quiet")
    return nearsim
