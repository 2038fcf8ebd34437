"""Ingest processes that are killed anywhere and run again: the same result."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nearsim_db import Index


def run(database_url: str, file: Path, kill_at: int | str) -> int:
    """Ingest in a process that kills itself at a progress event, or at the first of a step; 0 lets it finish."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.builders.killed_ingest", database_url, str(file), str(kill_at)],
        env={**os.environ, "NEARSIM_BACKEND": "numpy"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def write_documents(file: Path, *, edition: int) -> None:
    """200 documents in families of four that share most of their words; an edition changes every third family."""
    lines = []
    for number in range(200):
        family = number // 4
        words = [f"f{family}w{at}" for at in range(30)]
        words[number % 30] = f"own{number}"
        if edition == 2 and family % 3 == 0:
            words[: 3 * (number % 4)] = [f"new{number}w{at}" for at in range(3 * (number % 4))]
        lines.append(json.dumps({"id": f"d{number}", "text": " ".join(words)}))
    file.write_text("\n".join(lines), encoding="utf-8")


def answers(database_url: str, collection: str = "default") -> tuple[object, object]:
    """All results of an index, in comparable form."""
    with Index.connect(database_url, collection=collection) as index:
        assert index.stats()["queued"] == 0
        return sorted(map(str, index.pairs())), sorted(str(one.members) for one in index.clusters())


@pytest.fixture
def uninterrupted(database_url: str, tmp_path: Path) -> list[tuple[object, object]]:
    """The results of both editions when nothing is killed."""
    found = []
    file = tmp_path / "whole.jsonl"
    from nearsim_db.readers import Source

    with Index.connect(database_url, collection="whole") as index:
        for edition in (1, 2):
            write_documents(file, edition=edition)
            index.ingest(Source([file]))
            found.append(answers(database_url, "whole"))
    assert found[0] != found[1] and found[0][0]
    return found


@pytest.mark.slow("eleven processes, nine of them killed")
def test_repeatedly_killed_ingest_completes(
    database_url: str, tmp_path: Path, uninterrupted: list[tuple[object, object]]
) -> None:
    file = tmp_path / "documents.jsonl"
    # A build has some twenty progress events, a catch-up eight; each list goes through all of its stages.
    for edition, events in ((1, (2, 7, 9, 12, 14)), (2, (3, 6, 6, 7))):
        expected = uninterrupted[edition - 1]
        write_documents(file, edition=edition)
        killed = [run(database_url, file, at) for at in events]
        assert killed.count(-signal.SIGKILL) >= 3
        assert run(database_url, file, 0) == 0
        assert answers(database_url) == expected
