"""The command line without a database: help and usage errors."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from nearsim_db.cli.app import app

HEAVY = ["numpy", "numba", "sqlalchemy", "psycopg", "alembic", "rich.progress"]
COMMANDS = [
    *(
        "ingest",
        "build",
        "worker",
        "attach",
        "sweep",
        "detach",
        "dedupe",
        "pairs",
        "clusters",
        "similar",
        "check",
        "why",
        "why-not",
        "get",
        "delete",
        "stats",
        "report",
        "export",
        "curve",
        "tune",
        "doctor",
        "verify-index",
    ),
    *("events", "events prune"),
    *("profile create", "profile list", "profile show", "profile delete"),
    *("collection create", "collection list", "collection show", "collection rename", "collection delete"),
    *("work list", "work retry", "work discard"),
    *("verdict pin", "verdict veto", "verdict undo", "verdict list"),
    *(
        "db init",
        "db upgrade",
        "db start",
        "db status",
        "db stop",
        "db url",
        "db grant",
        "db revoke",
        "db isolation",
    ),
]
NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


def nearsim(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from nearsim_db.cli import main; main()", *arguments]
    return subprocess.run(
        program, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_help_imports_nothing_heavy() -> None:
    probe = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print(sorted(set({HEAVY}) & set(sys.modules))))\n"
        "sys.argv = ['nearsim', '--help']\n"
        "from nearsim_db.cli import main\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert ended.stdout.splitlines()[-1] == "[]"


def test_help_names_the_exit_codes() -> None:
    shown = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    assert "Exit codes: 0 ok, 1 error, 2 wrong usage or recipe, 130 interrupted" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "--help"])
    assert shown.exit_code == 0
    assert f"nearsim {command}" in shown.stdout.partition("Example: ")[2]


def test_planning_commands_have_their_own_panel() -> None:
    shown = CliRunner().invoke(app, ["--help"]).stdout
    panel, management = shown.partition(" Planning ")[2].split(" Management ")
    assert " curve " in panel and " tune " in panel
    assert " tune " not in management and " Queries " not in panel


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == "nearsim 0.1.0\n"


def test_usage_errors_exit_with_2() -> None:
    for wrong in (
        ["no-such-command"],
        ["ingest"],
        ["pairs", "--format", "xml"],
        ["pairs", "--min-similarity", "2"],
    ):
        assert CliRunner().invoke(app, wrong).exit_code == 2


@pytest.mark.slow("starts a process")
def test_unreachable_server_is_reported_in_one_line() -> None:
    ended = nearsim("stats", NEARSIM_DATABASE_URL=NOWHERE)
    assert ended.returncode == 1
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("error: ") and "127.0.0.1" in line


def test_external_server_is_neither_started_nor_stopped() -> None:
    for command in ("start", "stop"):
        ended = nearsim("db", command, NEARSIM_DATABASE_URL=NOWHERE)
        assert ended.returncode == 2
        assert "NEARSIM_DATABASE_URL is set, and nearsim does not start or stop that server" in ended.stderr


def test_db_url_is_accepted_by_psql() -> None:
    ended = nearsim(
        "db", "url", NEARSIM_DATABASE_URL="postgresql+psycopg://me:secret@host:5433/mine?sslmode=require"
    )
    assert ended.stdout == "postgresql://me:secret@host:5433/mine?sslmode=require\n"
