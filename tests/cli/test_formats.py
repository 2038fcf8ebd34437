"""One habit for all commands: --format and --json, collections and profiles by option or environment."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from nearsim_db.cli.app import app
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output.documents import print_document
from tests.builders.command_line import CommandLine

DOCUMENTS = [{"id": "a", "nested": {"n": [1, None]}}, {"id": "=b", "more": 0.5}]


def every_command(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    names = command.list_commands(None) if hasattr(command, "list_commands") else []
    for name in names:
        yield from every_command(command.get_command(None, name), (*path, name))


def test_every_command_with_a_format_has_json_as_its_short_form() -> None:
    found = {path: command.params for path, command in every_command(get_command(app))}
    assert len(found) > 50
    formatted = 0
    for path, parameters in found.items():
        options = {option for one in parameters for option in one.opts}
        if "--format" in options:
            (format,) = [one for one in parameters if "--format" in one.opts]
            for_people = set() if path == ("export",) else {"table"}
            assert {*for_people, "json", "jsonl", "csv"} <= set(format.type.choices), path
            assert "--json" in options, path
            formatted += 1
    assert formatted > 30


def test_collection_and_profile_are_options_wherever_they_are_named() -> None:
    for path, command in every_command(get_command(app)):
        arguments = {one.name for one in command.params if one.param_type_name == "argument"}
        options = {option for one in command.params for option in one.opts}
        if "collection" in arguments | {one.name for one in command.params}:
            assert {"--collection", "-c"} <= options, path
        if "profile" in {one.name for one in command.params}:
            assert {"--profile", "-p"} <= options, path


@pytest.mark.parametrize("format", [Format.JSON, Format.JSONL, Format.CSV])
def test_a_document_has_the_same_values_in_every_format(format: Format) -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="utf-8", write_through=True)
    print_document(format, DOCUMENTS, stream)
    text = written.getvalue().decode()
    if format is Format.CSV:
        assert list(csv.reader(io.StringIO(text))) == [
            ["id", "nested", "more"],
            ["a", '{"n":[1,null]}', ""],
            ["'=b", "", "0.5"],
        ]
    else:
        found = json.loads(text) if format is Format.JSON else [json.loads(one) for one in text.splitlines()]
        assert found == DOCUMENTS


def test_answers_as_one_document(filled: CommandLine) -> None:
    rows = filled.succeed("pairs", "--format", "jsonl").rows()
    assert len(rows) == 3
    assert filled.succeed("pairs", "--json").document() == rows
    assert (
        filled.succeed("pairs", "--json", "--min-similarity", 1, "--limit", 1).document()[0]["similarity"]
        == 1
    )
    assert filled.succeed("similar", "bridge", "--json").document() == []
    assert filled.succeed("get", "storm", "--format", "jsonl").rows()[0]["id"] == "storm"
    (line,) = csv.DictReader(io.StringIO(filled.succeed("stats", "--format", "csv").out))
    assert (line["pairs"], json.loads(line["recipe"])["shingle"]["k"]) == ("3", 3)
    said = filled.fail("pairs", "--json", "--format", "csv", exit_code=2)
    assert said == "error: --json cannot be combined with --format csv"
    assert filled.succeed("pairs", "--json", "--format", "json").document() == rows


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
    differing = at.fail("reindex", "status", "default", "-p", "strict", exit_code=2)
    assert differing == "error: default and --profile strict differ; give one of them"
    elsewhere = CommandLine({**filled.environment, "NEARSIM_COLLECTION": "news"})
    assert "'news'" in elsewhere.fail("pairs")
    assert len(elsewhere.succeed("pairs", "-c", "default", "--json").document()) == 3


def test_help_names_every_value() -> None:
    """No option shows the name of a type of Python instead of what it takes."""
    for path, command in every_command(get_command(app)):
        for one in command.params:
            is_value = one.param_type_name == "option" and not one.is_flag
            assert not is_value or one.metavar or hasattr(one.type, "choices"), (path, one.opts)
