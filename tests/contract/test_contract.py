"""What other programs rely on, compared with golden files; `make golden` writes them again after an addition."""

from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import pytest

from nearsim_db.cli.app import OLD_NAMES
from tests.builders.logins import login, user_of
from tests.contract import options, python_names, sql_names
from tests.contract.session import Ran, exit_codes, json_keys, run_all, write_files
from tests.servers.databases import Server
from tests.servers.homes import server_home

GOLDEN = Path(__file__).with_name("golden")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which commands run."""
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def ran(server: Server, folder: Path) -> Iterator[list[Ran]]:
    """The outcomes of all commands on one small database."""
    write_files(folder)
    with pytest.MonkeyPatch.context() as changed, server.database() as url, login(url) as user:
        changed.delenv("NEARSIM_DATABASE_URL", raising=False)
        changed.chdir(folder)
        with server_home() as home:
            yield list(run_all(url, user_of(user), home))


def compare(request: pytest.FixtureRequest, name: str, found: str) -> None:
    """Assert that a golden file has this text, or write it there with --write-golden."""
    path = GOLDEN / name
    if request.config.getoption("--write-golden", default=False):
        path.write_text(found, "utf-8")
    golden = path.read_text("utf-8")
    lines = unified_diff(golden.splitlines(), found.splitlines(), f"golden/{name}", "found", n=2, lineterm="")
    if difference := "\n".join(lines):
        pytest.fail(f"{difference}\n\nif this is meant: make golden", pytrace=False)


def test_exit_codes(request: pytest.FixtureRequest, ran: list[Ran]) -> None:
    compare(request, "exit_codes.txt", exit_codes(ran))


def test_json_keys(request: pytest.FixtureRequest, ran: list[Ran], folder: Path) -> None:
    compare(request, "json_keys.txt", json_keys(ran, folder))


def test_options(request: pytest.FixtureRequest) -> None:
    compare(request, "options.txt", options.render())


def test_python_names(request: pytest.FixtureRequest) -> None:
    compare(request, "python_names.txt", python_names.render())


def test_sql_names(request: pytest.FixtureRequest, database_url: str) -> None:
    compare(request, "sql_names.txt", sql_names.render(database_url))


def test_every_command_runs(ran: list[Ran]) -> None:
    """Each command of the command line, by its earlier name too, is among those whose exit codes are recorded."""
    given = {tuple(one.command.split()) for one in ran}
    names = [
        tuple(name.split()[1:]) for name, command in options.every_command(options.whole()) if command.params
    ]
    names += [tuple(name.split()) for name in OLD_NAMES if options.old_command(name).params]
    assert [name for name in names if not any(one[: len(name)] == name for one in given)] == []
