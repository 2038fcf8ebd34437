"""Commands of a user that the system has no entry for, as in containers, and of one whose folders are closed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders.command_line import STORM, STORM_AGAIN, write_jsonl

UNKNOWN = "54321"
NEARSIM = ("-m", "nearsim_db")
NUMPY = {"NEARSIM_BACKEND": "numpy"}  # which needs no compilation

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can step down to another user"
)


def run(
    folder: Path, environment: Mapping[str, str], *arguments: object, may_write: bool = False
) -> tuple[int, str, str]:
    """Run Python as a user without name and home, with nothing but this environment.

    The user may read every file, as the interpreter may be in a closed folder, and on demand write every file.
    """
    right = "+dac_override" if may_write else "+dac_read_search"
    step_down = ["setpriv", f"--reuid={UNKNOWN}", f"--regid={UNKNOWN}", "--clear-groups"]
    step_down += [f"--inh-caps={right}", f"--ambient-caps={right}"]
    done = subprocess.run(
        [*step_down, sys.executable, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the user, with two near-duplicates in a file."""
    os.chown(tmp_path, int(UNKNOWN), int(UNKNOWN))
    write_jsonl(
        tmp_path / "two.jsonl",
        [{"id": name, "text": text} for name, text in (("a", STORM), ("b", STORM_AGAIN))],
    )
    return tmp_path


@pytest.mark.slow("starts processes")
def test_commands_without_a_server_need_no_home(folder: Path) -> None:
    code, _, error = run(folder, {}, *NEARSIM, "--help")
    assert code == 0, error
    nowhere = NUMPY | {"NEARSIM_DATABASE_URL": "postgresql://nowhere.invalid/none"}
    code, shown, error = run(folder, nowhere, *NEARSIM, "dedupe", "two.jsonl", "-o", "one.jsonl", "--json")
    assert code == 0, error
    assert len((folder / "one.jsonl").read_text().splitlines()) == 1
    assert '"read": 2' in shown
    code, _, error = run(folder, {}, "-c", "import nearsim_db.similarity.sketch.kernels.compiled_comparison")
    assert code == 0, error
    assert {one.name for one in folder.iterdir()} == {"two.jsonl", "one.jsonl"}


@pytest.mark.slow("starts processes")
def test_a_database_of_its_own_needs_no_home(folder: Path, database_url: str) -> None:
    given = {"NEARSIM_DATABASE_URL": database_url, **NUMPY}
    code, _, error = run(folder, given, *NEARSIM, "ingest", "two.jsonl", may_write=True)
    assert code == 0, error
    code, shown, error = run(folder, given, *NEARSIM, "pairs", "--format", "jsonl", may_write=True)
    assert code == 0 and len(shown.splitlines()) == 1, error


@pytest.mark.slow("starts processes")
def test_the_embedded_server_says_what_it_needs(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o555)
    no_home = (
        f"error: user {UNKNOWN} has no home folder for the data of the embedded server; set NEARSIM_HOME to"
    )
    no_name = f"error: PostgreSQL cannot create the embedded server for user ID {UNKNOWN}, which has no entry in /etc"
    refused = "cannot be used: [Errno 13] Permission denied"
    tried: tuple[tuple[dict[str, str], str], ...] = (
        ({}, no_home),
        ({"NEARSIM_HOME": str(folder / "home")}, no_name),
        ({"HOME": str(closed)}, refused),
    )
    for environment, message in tried:
        code, _, error = run(folder, environment, *NEARSIM, "stats")
        assert (code, error.count("\n")) == (1, 1) and message in error and "NEARSIM_DATABASE_URL" in error
    code, shown, _ = run(folder, {}, *NEARSIM, "doctor")
    assert code == 1 and no_home.removeprefix("error: ") in shown
    undetected = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "True"}  # of the shell above the tests
    code, _, error = run(folder, undetected, *NEARSIM, "--install-completion", "bash")
    assert (code, error.count("\n")) == (1, 1) and "the completion cannot be installed" in error
