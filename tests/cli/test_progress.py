"""Progress bars: what they say of a step, and that every step of an ingest has words."""

import re
from typing import Any

import pytest

from nearsim_db import Document, Index
from nearsim_db.cli.output import progress
from tests.builders.command_line import STORM, STORM_AGAIN, Terminal


def test_a_complete_step_shows_its_total(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    for name, value in (("COLUMNS", "120"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    with progress.progress_bars(quiet=False) as report:
        report("candidates", 1_000, 8_000)
        report("signatures", 0, 44_000)
        report("sign", 0, 0)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    verifying, indexing = shown.splitlines()[-2:]
    assert "verifying " in verifying and " 8,000 documents" in verifying
    assert "indexing sketches " in indexing and " 44,000 documents" in indexing
    assert "signing" not in shown


def test_count_with_a_rate_or_a_total() -> None:
    for done, total, seconds, shown in (
        (1_000, 8_000, 4.0, "1,000 rows, 250/s"),
        (1_000, None, 0.5, "1,000 rows"),
        (0, 8_000, 9.0, "8,000 rows"),
        (0, None, 9.0, ""),
    ):
        assert progress.count_shown(done, total, "rows", seconds) == shown


def test_every_step_of_an_ingest_is_named_and_writing_follows_reading(database_url: str) -> None:
    steps: dict[str, Any] = {}
    with Index.connect(
        database_url, progress=lambda step, done, total: steps.setdefault(step, total)
    ) as index:
        index.add([Document("a", body=STORM), Document("b", body=STORM_AGAIN)])
        index.add([Document("a", body=STORM_AGAIN)])
    assert steps.keys() <= progress.STEPS.keys()
    names = list(steps)
    assert names[:2] == ["read", "save"] and steps["save"] == 2
    assert steps["signatures"] == steps["pairs"] == steps["clusters"] == 2
