"""The command line on a fresh database."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.builders.browser import browser as browser
from tests.builders.command_line import STORIES, CommandLine, write_jsonl
from tests.builders.report_pages import write_report
from tests.servers.citus import AnyServer
from tests.servers.databases import Server


def fill(url: str) -> None:
    """Ingest the stories into the default collection: a pair, a twin of its first, and two unrelated ones."""
    with TemporaryDirectory() as folder:
        CommandLine({"NEARSIM_DATABASE_URL": url}).succeed("ingest", write_stories(Path(folder)), "--quiet")


def write_stories(folder: Path) -> Path:
    return write_jsonl(
        folder / "stories.jsonl", ({"id": name, "text": text} for name, text in STORIES.items())
    )


@pytest.fixture
def database_url(server: AnyServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with the schema; a test that takes `filled` has a copy of one with the stories."""
    with server.database(fill if "filled" in request.fixturenames else None) as url:
        yield url


@pytest.fixture
def nearsim(database_url: str, tmp_path: Path) -> CommandLine:
    """`nearsim` on a database with the schema and nothing else."""
    return CommandLine({"NEARSIM_DATABASE_URL": database_url, "NEARSIM_HOME": str(tmp_path / "home")})


@pytest.fixture
def stories(tmp_path: Path) -> Path:
    """The stories as a file."""
    return write_stories(tmp_path)


@pytest.fixture
def filled(nearsim: CommandLine) -> CommandLine:
    """The same with the stories in its default collection."""
    return nearsim


@pytest.fixture(scope="module")
def page_file(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A report on malicious texts, with rejects."""
    with server.database() as url:
        yield write_report(url, tmp_path_factory.mktemp("report"))


@pytest.fixture
def complaints() -> list[str]:
    return []
