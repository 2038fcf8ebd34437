"""nearsim events: listing, following across processes, and pruning."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.builders.command_line import STORM, CommandLine, write_jsonl


@contextmanager
def following(nearsim: CommandLine, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`nearsim events --follow` in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nearsim_db", "events", "--follow", *arguments],
        env={**os.environ, **nearsim.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_events_are_filtered_and_written(filled: CommandLine, tmp_path: Path) -> None:
    shown = filled.succeed("events", "--kind", "pair_found", "--kind", "cluster_formed", "--limit", "2")
    assert "pair_found" in shown.out and "generation_live" not in shown.out
    output = tmp_path / "events.csv"
    filled.succeed("events", "-c", "default", "-p", "default", "--output", output)
    assert len(output.read_text().splitlines()) == 5
    filled.succeed("delete", "storm", "--yes")
    (renamed,) = filled.succeed("events", "--kind", "cluster_renamed", "--format", "jsonl").rows()
    head, _, row = filled.succeed("events", "--kind", "cluster_renamed", "--quiet").out.splitlines()
    assert (head.split()[-1], row.split()[-1]) == ("other_ids", str(renamed["other_ids"][0]))


@pytest.mark.slow("starts a process")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_follow_runs_until_a_signal(
    filled: CommandLine, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with following(filled, "--kind", "pair_found") as process:
        assert process.stdout is not None
        reported = [json.loads(process.stdout.readline()) for _ in range(2)]
        more = write_jsonl(tmp_path / "more.jsonl", [{"id": "later", "text": STORM}])
        filled.succeed("ingest", more, "--quiet")
        reported.append(json.loads(process.stdout.readline()))
        assert [one["right"] for one in reported[1:]] == ["storm-twin", "later"]
        process.send_signal(number)
        assert process.wait(20) == code


def test_followed_events_are_appended_to_a_file(filled: CommandLine, tmp_path: Path) -> None:
    output = tmp_path / "events.csv"
    for after, limit in ((0, 3), (3, 1)):
        filled.succeed("events", "--follow", "--after", after, "--limit", limit, "--output", output)
    _, *rows = output.read_text().splitlines()
    kinds = [row.split(",")[1] for row in rows]
    assert kinds == ["generation_live", "pair_found", "pair_found", "cluster_formed"]
