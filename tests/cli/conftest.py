"""The command line on a fresh database."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.builders.command_line import STORIES, CommandLine, write_jsonl
from tests.builders.report_pages import write_report
from tests.servers.databases import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture
def nearsim(database_url: str, tmp_path: Path) -> CommandLine:
    """`nearsim` on a database with the schema and nothing else."""
    return CommandLine({"NEARSIM_DATABASE_URL": database_url, "NEARSIM_HOME": str(tmp_path / "home")})


@pytest.fixture
def stories(tmp_path: Path) -> Path:
    """Five documents: a pair, a twin of its first, and two unrelated ones."""
    return write_jsonl(
        tmp_path / "stories.jsonl", ({"id": name, "text": text} for name, text in STORIES.items())
    )


@pytest.fixture
def filled(nearsim: CommandLine, stories: Path) -> CommandLine:
    """The same with the stories in its default collection."""
    nearsim.succeed("ingest", stories, "--quiet")
    return nearsim


@pytest.fixture(scope="module")
def page_file(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A report on malicious texts, with rejects."""
    with server.database() as url:
        yield write_report(url, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}: make browser installs it where it can")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def complaints() -> list[str]:
    return []
