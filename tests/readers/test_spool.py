"""Copies of what can be read only once."""

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from nearsim_db.readers.spool import readable_twice


def test_standard_input_and_pipes_are_copied_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(2_500_000)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    pipes = [tmp_path / "a.csv", tmp_path / "b"]
    for pipe in pipes:
        os.mkfifo(pipe)
        threading.Thread(target=pipe.write_bytes, args=(pipe.name.encode(),)).start()
    file = tmp_path / "c.jsonl"
    file.touch()
    steps: list[tuple[str, int, int | None]] = []
    with readable_twice([Path("-"), *pipes, file], None, lambda *step: steps.append(step)) as paths:
        assert [path.name for path in paths] == ["standard-input.json", "a.csv", "b.json", "c.jsonl"]
        assert [path.read_bytes() for path in paths] == [content, b"a.csv", b"b", b""]
    assert [path.exists() for path in paths] == [False, False, False, True]
    assert steps[-3] == ("spool", 2, None)


def test_files_are_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.touch()
    with readable_twice([path], ".csv") as paths:
        assert paths == [path]
