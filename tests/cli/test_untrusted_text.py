"""Ids and titles with formulas, escape sequences and direction controls, in every output."""

import csv
import io
import json
import re
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest
import typer

from nearsim_db.cli.app import app
from nearsim_db.errors import NearsimError
from tests.builders.command_line import STORM, STORM_AGAIN, CommandLine, write_jsonl

FORMULAS = ["=1+1", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201"]
PLAIN = ["1-2", "a=b", "'=1", " =1", "5", ""]
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202egnp.exe\u2066\u2028 \r\n\t"
REORDERING = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class TerminalBytes(io.BytesIO):
    def isatty(self) -> bool:
        return True


class TerminalText(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def hostile(nearsim: CommandLine, tmp_path: Path) -> CommandLine:
    """An index of three alike documents with hostile ids and titles, a verdict on two, and one rejected record."""
    rows: list[dict[str, object]] = [
        {"id": f"a {HOSTILE}z", "title": HOSTILE, "text": STORM},
        {"id": "=b", "title": f"=1+1{HOSTILE}", "text": STORM_AGAIN, "source": HOSTILE, "url": HOSTILE},
        {"id": "c", "title": "plain", "text": STORM, "attributes": {HOSTILE: HOSTILE}},
        {"id": "d", "title": "alone", "published_at": HOSTILE, "text": "text"},
    ]
    nearsim.run("ingest", write_jsonl(tmp_path / "rows.jsonl", rows), "--rejects", tmp_path / "rejects.jsonl")
    nearsim.succeed("verdict", "veto", "=b", "c", "--why", HOSTILE)
    return nearsim


class Screen:
    """Runs commands with both outputs on a terminal."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
        self._monkeypatch = monkeypatch
        settings = {"TERM": "dumb", "COLUMNS": "200", "LINES": "50", "NO_COLOR": "1"}
        for name, value in (environment | settings).items():
            monkeypatch.setenv(name, value)

    def shown(self, *arguments: object) -> str:
        """All that a command prints."""
        bytes_ = TerminalBytes()
        with self._monkeypatch.context() as patch:
            stream = TerminalText(bytes_, encoding="utf-8", write_through=True, newline="")
            patch.setattr(sys, "stdout", stream)
            patch.setattr(sys, "stderr", stream)
            with suppress(SystemExit, typer.Exit, NearsimError):
                app([str(one) for one in arguments], standalone_mode=False)
            return bytes_.getvalue().decode()


@pytest.fixture
def screen(hostile: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Screen:
    return Screen(monkeypatch, hostile.environment)


def unsafe(shown: str) -> list[str]:
    """The characters that act on a terminal, other than line ends."""
    return [
        one for one in shown if one != "\n" and (unicodedata.category(one) == "Cc" or REORDERING.match(one))
    ]


@pytest.mark.slow("every command")
def test_no_command_prints_control_characters_on_a_terminal(screen: Screen, tmp_path: Path) -> None:
    identifier = f"a {HOSTILE}z"
    lists: list[list[object]] = [["pairs"], ["clusters"], ["events"], ["verdict", "list"]]
    lists += [["similar", "=b"], ["similar", "--text", STORM], ["check", "--text", STORM, "--title", HOSTILE]]
    gets: list[list[object]] = [["document", "get", one] for one in (identifier, "=b", "c")]
    commands: list[list[object]] = [
        *([*one, "--format", format] for one in lists for format in ("table", "jsonl", "csv", "csv-exact")),
        *([*one, "--format", format] for one in gets for format in ("json", "table")),
        ["verdict", "list", "--json"],
        ["document", "get", HOSTILE],
        ["similar", HOSTILE],
        ["verdict", "veto", "c", HOSTILE, "--why", "no"],
        ["ingest", tmp_path / "rows.jsonl"],
        ["ingest", tmp_path / "rows.jsonl", "--json"],
        ["ingest", tmp_path / "rows.jsonl", "--strict"],
        ["ingest", tmp_path / "rows.jsonl", "--on-duplicate", "flag", "--json"],
        ["ingest", tmp_path / "rows.jsonl", "--id-field", HOSTILE],
        ["document", "delete", HOSTILE, "--yes"],
        ["collection", "create", HOSTILE],
        ["pairs", "--collection", HOSTILE],
        ["pairs", "--output", tmp_path / HOSTILE],
        ["profile", "create", HOSTILE, "--set", f"shingle.stopwords={HOSTILE}"],
        ["profile", "show", "default"],
        ["report", "--json"],
        ["stats"],
        ["doctor"],
    ]
    for command in commands:
        shown = screen.shown(*command)
        assert shown and not unsafe(shown), command


def test_formulas_in_csv_are_marked_unless_exact_cells_are_wanted(
    nearsim: CommandLine, tmp_path: Path
) -> None:
    titles = [*FORMULAS, *PLAIN]
    rows = [{"id": f"d{n}", "title": title, "text": STORM} for n, title in enumerate(titles)]
    nearsim.succeed("ingest", write_jsonl(tmp_path / "rows.jsonl", rows), "-q")

    stored = {f"d{n}": title for n, title in enumerate(titles)}

    def written(*arguments: object) -> dict[str, str]:
        out = nearsim.succeed("similar", "--text", STORM, *arguments).out
        return {row["id"]: row["title"] for row in csv.DictReader(io.StringIO(out, newline=""))}

    marked = {id: f"'{title}" if title in FORMULAS else title for id, title in stored.items()}
    assert written("--format", "csv") == marked
    assert written("--format", "csv-exact") == stored
    found = nearsim.succeed("similar", "--text", STORM, "--format", "jsonl").rows()
    assert {one["id"]: one["title"] or "" for one in found} == stored


def test_csv_and_json_lines_in_files_keep_control_characters(hostile: CommandLine, tmp_path: Path) -> None:
    for format, name in (("csv-exact", "out.csv"), ("jsonl", "out.jsonl")):
        hostile.succeed("similar", "c", "--format", format, "--output", tmp_path / name)
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as stream:
        cells = [row["title"] for row in csv.DictReader(stream)]
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert cells == [json.loads(line)["title"] for line in lines]
    assert any("\x1b]0;owned\x07" in cell for cell in cells)


def test_json_on_a_terminal_has_the_same_values(hostile: CommandLine, screen: Screen) -> None:
    plain = hostile.succeed("document", "get", "=b").document()
    assert json.loads(screen.shown("document", "get", "=b")) == plain
