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


def test_the_first_few_are_kept(tmp_path: Path) -> None:
    rejects = [Reject("a", line, "bad") for line in range(100)]
    with RejectWriter(tmp_path / "r.jsonl") as writer:
        for reject in rejects:
            writer.write(reject)
    assert (writer.count, writer.first) == (100, rejects[:5])
    assert [row["line"] for row in rows(tmp_path / "r.jsonl")] == list(range(100))


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


def test_a_file_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(
            NearsimError, match=r"cannot write the reject file .*: No such file or directory; name another"
        ),
        RejectWriter(tmp_path / "no" / "rejects.jsonl"),
    ):
        pass


def test_a_full_disk_is_an_error() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with (
        pytest.raises(NearsimError, match=r"cannot write the reject file .*: No space left on device"),
        RejectWriter(full) as writer,
    ):
        writer.write(Reject("a", 1, "bad"))


def test_rejects_of_a_file_are_listed_up_to_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearsim_db.readers.rejects._MOST_LISTED", 2)
    path = tmp_path / "rejects.jsonl"
    with RejectWriter(path) as writer:
        for file, lines in (("a", 5), ("b", 2), ("c", 3)):
            for line in range(1, lines + 1):
                writer.write(Reject(file, line, "bad"))
    assert writer.count == 10
    listed = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(one["file"], one["line"]) for one in listed] == [
        ("a", 1), ("a", 2), ("a", 0), ("b", 1), ("b", 2), ("c", 1), ("c", 2), ("c", 0),
    ]  # fmt: skip
    assert listed[2]["reason"] == "3 more rejected records of this file are not listed"
