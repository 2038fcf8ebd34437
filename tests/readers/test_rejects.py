"""The reject file."""

import json
from pathlib import Path

import pytest

from nearsim_db.errors import NearsimError
from nearsim_db.readers import RejectWriter
from nearsim_db.records import Reject


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_rejects_are_written_immediately(tmp_path: Path) -> None:
    path = tmp_path / "rejects.jsonl"
    with RejectWriter(path) as writer:
        assert path.read_bytes() == b""
        writer.write(Reject("a.jsonl", 3, "not JSON"))
        assert rows(path) == [{"file": "a.jsonl", "line": 3, "id": None, "reason": "not JSON"}]
        writer.write(Reject("日本.csv", 4, "no 'title'\n", "é\ud800"))
        assert rows(path)[1] == {"file": "日本.csv", "line": 4, "id": "é\ud800", "reason": "no 'title'\n"}
    assert "日本.csv" in path.read_text(encoding="utf-8")
    assert writer.count == 2


def test_without_a_path_they_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with RejectWriter(None) as writer:
        writer.write(Reject("a", 1, "bad"))
    assert (writer.count, writer.first) == (1, [Reject("a", 1, "bad")])
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_replaces_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rejects.jsonl"
    for line in (1, 2):
        with RejectWriter(path) as writer:
            writer.write(Reject("a", line, "bad"))
    assert [row["line"] for row in rows(path)] == [2]


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "rejects.jsonl", Path("/dev/full")):
        with pytest.raises(NearsimError, match=str(path)), RejectWriter(path) as writer:
            writer.write(Reject("a", 1, "bad"))


def test_the_first_rejects_are_kept_and_of_a_file_listed_up_to_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nearsim_db.readers.rejects._MOST_LISTED", 2)
    path = tmp_path / "rejects.jsonl"
    with RejectWriter(path) as writer:
        for file, lines in (("a", 5), ("b", 2), ("c", 3)):
            for line in range(1, lines + 1):
                writer.write(Reject(file, line, "bad"))
    assert (writer.count, len(writer.first)) == (10, 5)
    assert writer.first == [Reject("a", line, "bad") for line in range(1, 6)]
    listed = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(one["file"], one["line"]) for one in listed] == [
        ("a", 1), ("a", 2), ("a", 0), ("b", 1), ("b", 2), ("c", 1), ("c", 2), ("c", 0),
    ]  # fmt: skip
    assert listed[2]["reason"] == "3 more rejected records of this file are not listed"
