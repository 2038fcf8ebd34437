"""One habit for all commands: --format and --json, collections and profiles by option or environment."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.command_line import CommandLine
from tests.contract.options import every_command, whole

COMMON = ("--format", "--json", "--output", "-o", "--quiet", "-q")
EXCEPTIONS = {
    "worker": ("--format", "--output", "-o"),  # it runs until it is stopped; --json makes its log JSON lines
    "server url": COMMON,  # it prints one URL, for psql and programs
    "review": COMMON,  # it prints one URL, and serves pages until it is stopped
}
LISTS = {
    *("pairs", "clusters", "similar", "nearest", "check", "score", "events", "export"),
    *("profile list", "profile presets", "collection list", "verdict list", "work list"),
}


def test_a_folder_is_no_output_file(
    nearsim: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    outputs = {"--output", "--rejects", "--pairs", "--clusters"}
    named = [
        (path, option)
        for path, command in every_command(whole())
        for option in command.params
        if not outputs.isdisjoint(option.opts)
        and not option.multiple
        and not option.is_flag
        # These write a file for each of their inputs into a folder.
        and not (path in ("nearsim dedupe", "nearsim cut") and "--output" in option.opts)
    ]
    assert len(named) > 60
    for path, option in named:
        for folder in ("there", "new/"):
            assert "it is a folder" in nearsim.fail(*path.split()[1:], option.opts[0], folder, exit_code=2)
    assert [one.name for one in tmp_path.iterdir()] == ["there"]


def test_every_command_has_the_common_options() -> None:
    commands = {
        name.removeprefix("nearsim "): one
        for name, one in every_command(whole())
        if not hasattr(one, "list_commands") or name == "nearsim events"
    }
    assert len(commands) > 55
    for name, command in commands.items():
        missing = tuple(option for option in COMMON if option not in options_of(command))
        assert missing == EXCEPTIONS.get(name, ()), name
        assert ("--limit" in options_of(command)) == (name in LISTS), name
        if name not in EXCEPTIONS:
            (format,) = [one for one in command.params if "--format" in one.opts]
            for_people = {"report": {"html"}, "export": {"csv"}}.get(name, {"table", "csv", "jsonl"})
            assert {*for_people, "json"} <= set(format.type.choices), name


def options_of(command: Any) -> set[str]:
    return {option for one in command.params for option in one.opts}


def test_answers_as_one_document(filled: CommandLine) -> None:
    rows = filled.succeed("pairs", "--format", "jsonl").rows()
    assert len(rows) == 3
    assert filled.succeed("pairs", "--json").document() == rows
    assert (
        filled.succeed("pairs", "--json", "--min-similarity", 1, "--limit", 1).document()[0]["similarity"]
        == 1
    )
    assert filled.succeed("similar", "bridge", "--json").document() == []
    assert filled.succeed("document", "get", "storm", "--format", "jsonl").rows()[0]["id"] == "storm"
    (line,) = csv.DictReader(io.StringIO(filled.succeed("stats", "--format", "csv").out))
    assert (line["pairs"], json.loads(line["recipe"])["shingle"]["k"]) == ("3", 3)
    assert filled.succeed("pairs", "--json", "--format", "json").document() == rows


def test_output_has_what_is_printed(filled: CommandLine, tmp_path: Path) -> None:
    for suffix, format in ((".json", "json"), (".csv", "csv"), (".txt", "table")):
        path = tmp_path / f"result{suffix}"
        printed = filled.succeed("why", "storm", "storm-again", "--format", format)
        written = filled.succeed("why", "storm", "storm-again", "--output", path)
        assert (written.out, path.read_text()) == ("", printed.out)
    assert filled.succeed("stats", "--json", "--quiet", "-o", tmp_path / "named").err == ""
    assert json.loads((tmp_path / "named").read_text())


def test_output_of_a_result_that_fails(filled: CommandLine, tmp_path: Path) -> None:
    """A result that is printed before an error is written; without one there is no file, and nothing is done first."""
    path = tmp_path / "result.json"
    filled.fail("document", "delete", "storm", "no-such", "--yes", "--output", path)
    assert json.loads(path.read_text()) == {"deleted": ["storm"], "not_found": ["no-such"]}
    absent = tmp_path / "absent.json"
    filled.fail("document", "get", "no-such", "--output", absent)
    filled.fail("document", "delete", "harvest", "--yes", "--output", tmp_path / "no" / "folder.json")
    assert filled.succeed("document", "get", "harvest").document()["id"] == "harvest"
    assert not absent.exists()


def test_collection_and_profile_from_the_environment(filled: CommandLine) -> None:
    filled.succeed("profile", "create", "strict", "--threshold", 0.95, "--quiet")
    at = CommandLine({**filled.environment, "NEARSIM_PROFILE": "strict"})
    assert len(at.succeed("pairs", "--json").document()) == 1
    assert len(at.succeed("pairs", "-p", "default", "--json").document()) == 3
    assert {one["profile"] for one in at.succeed("events", "--json").document()} == {"strict"}
    assert {one["profile"] for one in at.succeed("reindex", "status", "--json").document()} == {"strict"}
    (other,) = at.succeed("reindex", "status", "default", "--json").document()
    assert other["profile"] == "default"
    assert at.succeed("reindex", "status", "--profile", "default", "--json").document() == [other]
    at.fail("reindex", "status", "default", "-p", "strict", exit_code=2)
    elsewhere = CommandLine({**filled.environment, "NEARSIM_COLLECTION": "news"})
    assert len(elsewhere.succeed("pairs", "-c", "default", "--json").document()) == 3
