"""Progress where standard error is no terminal: a line a stage, JSON lines, and silence."""

import io
import json
import re
from pathlib import Path
from threading import Event

import pytest

from nearsim_db.cli.output import progress
from tests.builders.command_line import STORIES, CommandLine, write_jsonl

LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 (?P<stage>\w+): (?P<count>[\d,]+) documents, done in .* s"
)


class Noted(io.StringIO):
    """Text that notes when a line was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = Event()

    def write(self, text: str) -> int:
        count = super().write(text)
        if "\n" in text:
            self.written.set()
        return count


@pytest.fixture
def stories(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "in.jsonl", [{"id": name, "text": text} for name, text in STORIES.items()])


def test_a_line_a_stage_is_logged(nearsim: CommandLine, stories: Path, tmp_path: Path) -> None:
    lines = nearsim.succeed("dedupe", stories, "-o", tmp_path / "out.jsonl").err.splitlines()
    found = [LINE.fullmatch(line) for line in lines]
    assert [(one["stage"], one["count"]) for one in found if one] == [
        ("reading", "5"),
        ("verifying", "4"),
        ("clustering", "5"),
        ("writing", "3"),
    ]
    assert len(found) == 4


def test_nothing_is_logged_with_quiet_or_json(nearsim: CommandLine, stories: Path, tmp_path: Path) -> None:
    command = ("dedupe", stories, "-o", tmp_path / "out.jsonl")
    assert nearsim.succeed(*command, "--quiet").err == ""
    assert nearsim.succeed(*command, "--quiet", "--log-format", "json").err == ""
    assert nearsim.succeed(*command, "--json").err == ""


def test_json_lines_hold_progress_warnings_and_errors(
    nearsim: CommandLine, stories: Path, tmp_path: Path
) -> None:
    stories.write_text(stories.read_text() + "{broken\n")
    command = ("dedupe", stories, "-o", tmp_path / "out.jsonl", "--log-format", "json")
    ended = nearsim.run(*command, "--json")
    *stages, error = [json.loads(line) for line in ended.err.splitlines()]
    assert [(one["event"], one["stage"], one["done"], one["total"], one["complete"]) for one in stages] == [
        ("progress", "read", 6, 6, True),
        ("progress", "candidates", 4, 4, True),
        ("progress", "clusters", 5, 5, True),
        ("progress", "write", 3, 3, True),
    ]
    assert ended.exit_code == 3 and error["level"] == "error"
    assert error["message"].startswith("1 of 6 records was rejected (1: not JSON")
    warning = json.loads(nearsim.succeed(*command, "--max-rejected", 1).err.splitlines()[-1])
    assert (warning["level"], warning["event"]) == ("warning", "note")
    assert nearsim.run("dedupe", tmp_path / "absent", "-o", "-").err.startswith("error: ")


def test_a_long_stage_is_logged_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Noted()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.001)
    with progress.progress_bars(quiet=False, log_format="json") as report:
        report("read", 1_000, None)
        assert stream.written.wait(30)
    first, *_, last = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (first["stage"], first["done"], first["complete"]) == ("read", 1_000, False)
    assert last["complete"]


def test_a_dry_run_counts_and_writes_nothing(nearsim: CommandLine, stories: Path, tmp_path: Path) -> None:
    files = {path: tmp_path / f"{path}.jsonl" for path in ("output", "pairs", "clusters", "rejects")}
    options = [part for name, path in files.items() for part in (f"--{name}", path)]
    counted = nearsim.succeed("dedupe", stories, *options, "--dry-run", "--json").document()
    assert not any(path.exists() for path in files.values())
    shown = nearsim.succeed("dedupe", stories, "--dry-run").out
    assert shown.startswith("Dry run: nothing was written.\n") and "unique               3\n" in shown
    written = nearsim.succeed("dedupe", stories, *options, "--json").document()
    assert counted == written | {"output": None, "dry_run": True}
    assert "--dry-run" in nearsim.fail("dedupe", stories, exit_code=2)
