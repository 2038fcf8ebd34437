"""The command line without a database: help, versions, addresses, and commands suggested in messages."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from nearsim_db.cli.app import OLD_NAMES, app
from nearsim_db.cli.options import PANELS
from nearsim_db.messages import suggested_command
from tests.contract.options import every_command, old_command, whole

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


def nearsim(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from nearsim_db.cli import main; main()", *arguments]
    return subprocess.run(
        program, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_help_names_the_exit_codes() -> None:
    shown = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    assert "Exit codes: 0 ok, 1 error, 2 wrong usage or recipe, 130 interrupted" in shown


def test_every_command_has_help_with_an_example() -> None:
    for name, command in every_command(whole()):
        if command.params and name != "nearsim":
            shown = CliRunner().invoke(app, [*name.split()[1:], "--help"])
            assert shown.exit_code == 0
            assert name in shown.stdout.partition("Example: ")[2] or f"{name} --" in shown.stdout, name


@pytest.mark.parametrize("old", OLD_NAMES)
def test_an_earlier_name_is_its_present_command(old: str) -> None:
    command = whole()
    for word in OLD_NAMES[old].split():
        command = command.get_command(None, word)
    assert old_command(old) is command


def test_earlier_names_are_in_no_help() -> None:
    listed = {name.removeprefix("nearsim ") for name, _ in every_command(whole())}
    assert listed.isdisjoint({*OLD_NAMES, "db"})


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("pair", "pairs"), ("init", "schema init"), ("dedup", "dedupe"), ("frobnicate", None)],
)
def test_an_unknown_command_suggests_known_ones(typed: str, meant: str | None) -> None:
    message = " ".join(CliRunner().invoke(app, [typed]).stderr.split())
    assert f"No such command '{typed}'." in message
    assert (f"Did you mean '{meant}'?" in message) if meant else "Did you mean" not in message


def shown_options() -> Iterator[tuple[str, Any]]:
    """The options of each command that its help shows, with the name of the command."""
    for name, command in every_command(whole()):
        for option in command.params:
            if option.param_type_name == "option" and not option.hidden:
                yield name, option


def test_the_help_of_an_option_is_one_sentence() -> None:
    for name, option in shown_options():
        text = re.sub(r" \((default|repeatable)\b.*?\)(?=[ .:;]|$)", "", option.help)
        assert re.fullmatch(r".*[^.]\.", text), (name, option.opts)
        assert not re.search(r"[.!?] +[A-Z]", text.replace("e.g. ", "")), (name, option.opts)


def test_options_are_in_the_panels_that_all_commands_share() -> None:
    panels = {option.rich_help_panel for name, option in shown_options() if name != "nearsim"}
    assert panels == {None, *PANELS}


def test_no_command_has_more_than_a_dozen_options_outside_panels() -> None:
    counts = Counter(name for name, option in shown_options() if option.rich_help_panel is None)
    assert {name: count for name, count in counts.items() if count > 12} == {}


def test_the_first_panel_has_the_everyday_commands() -> None:
    shown = CliRunner().invoke(app, ["--help"]).stdout
    first = shown.partition("Everyday commands")[2].partition("Compare documents")[0]
    assert re.findall(r"^\W+(\w+)  ", first, re.MULTILINE) == [
        "dedupe",
        "ingest",
        "pairs",
        "clusters",
        "similar",
    ]


def test_the_purpose_of_a_command_fits_a_line_of_80_columns() -> None:
    group = whole()
    purposes = {
        name: group.get_command(None, name).help.partition("\n\n")[0] for name in group.list_commands(None)
    }
    assert {name: purpose for name, purpose in purposes.items() if len(purpose) > 62} == {}


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == "nearsim 0.1.0\n"


@pytest.mark.slow("starts a process")
def test_unreachable_server_is_reported_in_one_line() -> None:
    ended = nearsim("stats", NEARSIM_DATABASE_URL=NOWHERE)
    assert ended.returncode == 1
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("error: ") and "127.0.0.1" in line


def test_db_url_is_accepted_by_psql() -> None:
    ended = nearsim(
        "server", "url", NEARSIM_DATABASE_URL="postgresql+psycopg://me:secret@host:5433/mine?sslmode=require"
    )
    assert ended.stdout == "postgresql://me:secret@host:5433/mine?sslmode=require\n"


def test_suggested_command_can_be_pasted_into_a_shell() -> None:
    assert suggested_command("reindex diff", "default", "default") == "nearsim reindex diff"
    assert suggested_command("reindex diff", "news", "body") == "nearsim reindex diff -p body -c news"
    assert suggested_command("profile delete", "news", "default") == "nearsim profile delete default -c news"
    promote = suggested_command("reindex promote", "two words", "default", "-g", "3")
    assert promote == "nearsim reindex promote -c 'two words' -g 3"
    verify = suggested_command("verify-index", "default", "it's", "--repair")
    assert verify == """nearsim verify-index -p 'it'"'"'s' --repair"""
