"""Collections shown, renamed and completed by a shell; prompts; similarities that an index does not store."""

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nearsim_db.cli.app import app
from nearsim_db.similarity import presets
from tests.builders.command_line import STORM, CommandLine, unlike_any_other, write_jsonl
from tests.builders.selection import some
from tests.builders.workers import application


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
from nearsim_db.cli.app import Commands

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


def completed(environment: dict[str, str], line: str) -> tuple[int, list[str], str]:
    """The exit code, the completions of the last word of a line, and what is on standard error."""
    asked = {"_NEARSIM_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    ended = CliRunner().invoke(app, [], prog_name="nearsim", env={**environment, **asked})
    return ended.exit_code, ended.stdout.split(), ended.stderr


def test_collections_and_profiles_are_completed(filled: CommandLine) -> None:
    filled.succeed("profile", "create", "strict", "--threshold", 0.9, "-q")
    filled.succeed("collection", "create", "news", "-q")
    for line, expected in {
        "nearsim pairs --collection ": ["default", "news"],
        "nearsim collection rename n": ["news"],
        "nearsim pairs -p s": ["strict"],
        "nearsim pairs -c news -p ": [],
        "nearsim reindex start ": ["default", "strict"],
        "nearsim profile show d": ["default"],
    }.items():
        assert completed(filled.environment, line) == (0, expected, ""), line
    elsewhere = {**filled.environment, "NEARSIM_COLLECTION": "news"}
    assert completed(elsewhere, "nearsim pairs -p ") == (0, [], "")


def test_presets_and_recipe_keys_are_completed() -> None:
    assert completed({}, "nearsim ingest --preset ")[1] == presets.names()
    assert completed({}, "nearsim tune --set match.t")[1] == ["match.threshold="]
    assert {"sketch.k=", "shingle.k="} <= set(completed({}, "nearsim ingest --set ")[1])


@pytest.mark.parametrize("url", ["postgresql://nobody@127.0.0.1:1/nothing", "mysql://x", "", "::"])
def test_completion_without_a_database_says_nothing(
    url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No server is started for it."""
    home = tmp_path_factory.mktemp("home") / "none"
    environment = {"NEARSIM_DATABASE_URL": url, "NEARSIM_HOME": str(home)}
    assert completed(environment, "nearsim pairs -c ") == (0, [], "")
    assert not home.exists()


def test_the_collections_of_values_are_deleted_only_if_they_are_named(
    nearsim: CommandLine, database_url: str
) -> None:
    with application(database_url) as connection:
        connection.execute("CREATE TABLE public.posts (id text PRIMARY KEY, tenant text NOT NULL, body text)")
        connection.execute(
            "INSERT INTO public.posts SELECT number, 't' || number % 2, 'text ' || number"
            " FROM generate_series(1, 5) AS number"
        )
        connection.execute("CREATE INDEX ON public.posts (tenant, id)")
    options = ("--id", "id", "--text", "body", "--collection-field", "tenant", "--collection", "posts")
    nearsim.succeed("table", "attach", "public.posts", *options, "-q")
    said = nearsim.fail("collection", "delete", "posts", "--yes")
    assert "2 collections of its values with 5 documents" in said and "--with-values" in said
    assert "posts:t0 (2)" in said and "posts:t1 (3)" in said
    assert len(nearsim.succeed("collection", "list", "--format", "jsonl").rows()) == 3
    done = nearsim.succeed("collection", "delete", "posts", "--yes", "--with-values", "--json").document()
    assert done == {"deleted": "posts", "documents": 5}
    assert nearsim.succeed("collection", "list", "--format", "jsonl").rows() == []


def test_what_does_not_exist_is_not_asked_about(nearsim: CommandLine) -> None:
    assert "'typo' does not exist" in nearsim.fail("collection", "delete", "typo")
    nearsim.succeed("collection", "create", "news")
    assert "has no profile 'typo'" in nearsim.fail("profile", "delete", "typo", "-c", "news")


@pytest.mark.parametrize(
    "command", ["collection delete nope", "table detach nope", "document delete -c nope d1"]
)
def test_a_deletion_asks_only_about_what_exists(
    nearsim: CommandLine, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    asked: list[object] = []
    for module in ("collections", "attach", "documents"):
        monkeypatch.setattr(f"nearsim_db.cli.commands.{module}.confirm", lambda *_, **__: asked.append(1))
    outcome = nearsim.run(*command.split())
    assert (outcome.exit_code, "collection 'nope' does not exist" in outcome.err, asked) == (1, True, [])
