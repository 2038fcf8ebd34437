"""Collections shown and renamed; prompts; the version; similarities that an index does not store."""

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.builders.command_line import STORM, CommandLine, unlike_any_other, write_jsonl
from tests.builders.selection import some


def test_a_collection_is_shown_and_renamed(filled: CommandLine) -> None:
    shown = filled.succeed("collection", "show", "default", "--json").document()
    assert (shown["collection"], shown["documents"], shown["follows"]) == ("default", 5, None)
    assert shown["profiles"] == [{"profile": "default", "state": "live", "threshold": 0.7}]
    filled.succeed("collection", "rename", "default", "wire")
    assert len(filled.succeed("pairs", "-c", "wire", "--json").document()) == 3
    assert "cannot be named" in filled.fail("collection", "rename", "wire", " x")


def test_a_lower_similarity_than_the_index_stores_is_pointed_out(filled: CommandLine) -> None:
    for question in (
        ["pairs"],
        ["similar", "storm"],
        ["similar", "--text", STORM],
        ["check", "--text", STORM],
    ):
        lower = filled.succeed(*question, "--min-similarity", 0.3, "--format", "jsonl").err
        assert "nearsim reindex start --threshold 0.3\n" in lower, question
        assert filled.succeed(*question, "--min-similarity", 0.7, "--format", "jsonl").err == ""


def test_ties_on_screen_are_in_the_order_of_numbers(nearsim: CommandLine, tmp_path: Path) -> None:
    texts = [unlike_any_other(0), unlike_any_other(1)]
    names = ["a10", "a9", "a100", "a2"]
    records = ({"id": name, "text": texts[at % 2]} for at, name in enumerate(names))
    nearsim.succeed("ingest", write_jsonl(tmp_path / "in.jsonl", records), "-q")
    assert [row["left"] for row in nearsim.succeed("pairs", "--json").document()] == ["a10", "a9"]
    shown = [line.split()[:2] for line in nearsim.succeed("pairs", "-q").out.splitlines()[2:]]
    assert shown == [["a9", "a2"], ["a10", "a100"]]
    survivors = [line.split()[0] for line in nearsim.succeed("clusters", "-q").out.splitlines()[2:]]
    assert survivors == ["a9", "a10"]


PROGRAM = """
import typer
from nearsim_db.cli.commands.documents import confirm
from nearsim_db.cli.failures import Commands

app = typer.Typer(cls=Commands)
app.callback()(lambda: None)

@app.command()
def drop() -> None:
    confirm("Delete it?")

app(["drop"])
"""


@pytest.mark.parametrize(
    ("keys", "exit_code"), some([(b"\x03", 130), (b"n\n", 1), (b"y\n", 0)], "starts a process")
)
def test_exit_code_of_an_answer_at_a_prompt(keys: bytes, exit_code: int) -> None:
    ours, theirs = pty.openpty()
    command = ["setsid", "--ctty", "--wait", sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        try:
            shown = b""
            while b"Delete it?" not in shown:
                shown += os.read(ours, 1024)
            assert press_until_it_ends(process, ours, keys) == exit_code
        finally:
            process.kill()
    os.close(ours)


def press_until_it_ends(process: subprocess.Popen[bytes], terminal: int, keys: bytes) -> int:
    """The exit code. Python notices a Ctrl-C between printing a prompt and waiting for keys at the next key only."""
    for _ in range(60):
        with suppress(OSError):  # it ends
            os.write(terminal, keys)
        with suppress(subprocess.TimeoutExpired):
            return process.wait(1)
    raise AssertionError(f"it did not end after {keys!r}")
