"""Messages for a server that stopped because its disk is full, and for folders that cannot be used."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from nearsim_db.cli.app import Commands
from nearsim_db.errors import InputError, NearsimError, UnreachableError

FULL = "is full: free space and run the same command again"


def complaint(error: NearsimError | Callable[[], object], environment: dict[str, str | None]) -> str:
    app = typer.Typer(cls=Commands)

    @app.command()
    def fail() -> None:
        if isinstance(error, NearsimError):
            raise error
        error()

    @app.command()
    def rest() -> None: ...

    outcome = CliRunner().invoke(app, ["fail"], env=environment)
    assert outcome.exit_code == 1
    return outcome.stderr


@pytest.mark.parametrize(
    ("error", "free", "url", "reported"),
    [
        (UnreachableError("the connection was lost"), 1_000_000, None, True),
        (UnreachableError("the connection was lost"), 10**10, None, False),
        (UnreachableError("the connection was lost"), 1_000_000, "postgresql://elsewhere/x", False),
        (InputError("no such file"), 1_000_000, None, False),
    ],
)
def test_full_disk_of_the_embedded_server_is_reported(
    error: NearsimError,
    free: int,
    url: str | None,
    reported: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    home = tmp_path / "not" / "yet"
    shown = complaint(error, {"NEARSIM_DATABASE_URL": url, "NEARSIM_HOME": str(home)})
    assert shown.startswith(f"error: {error}")
    assert (f"the disk of {home} {FULL}" in shown) == reported


def test_without_a_temporary_folder_the_error_names_tmpdir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nonexistent"])
    shown = complaint(tempfile.gettempdir, {})
    assert shown == (
        "error: No usable temporary directory found in ['/nonexistent']; set TMPDIR to one that can be written to\n"
    )


def test_a_closed_pipe_is_not_taken_for_a_failed_completion() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "nearsim_db", "--version"]
    try:
        assert subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False).stderr == b""
    finally:
        os.close(writing)
