"""Gzip files of either library, copies of what can be read only once, and the reject file."""

import gzip
import io
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from nearsim_db.errors import InputError, NearsimError
from nearsim_db.readers import RejectWriter
from nearsim_db.readers.decoding import decompressed
from nearsim_db.readers.input_file import InputFile
from nearsim_db.readers.inputs import readable_twice
from nearsim_db.records import Reject

Lines = tuple[list[bytes | None], str]
LINES = b"".join(b"a line of the file, number %d of many\n" % number for number in range(3_000))
WHOLE = gzip.compress(LINES, 6)
FILES = {
    "whole": WHOLE,
    "members": gzip.compress(b"a\n" * 9) + gzip.compress(b"") + gzip.compress(b"b\nc") + WHOLE,
    "stored": gzip.compress(LINES, 0),
    "named": WHOLE[:3] + b"\x08" + WHOLE[4:10] + b"name.txt\0" + WHOLE[10:],
    "repetitive": gzip.compress(b"a" * 5_000_000 + b"\nb"),
    "padded": WHOLE + bytes(512),
    "garbage after": WHOLE + b"no gzip",
    "no gzip": b"id,text\n1,x\n",
    "empty": b"",
    "wrong checksum": WHOLE[:-8] + bytes([WHOLE[-8] ^ 255]) + WHOLE[-7:],
    "wrong length": WHOLE[:-1] + bytes([WHOLE[-1] ^ 255]),
}


def read(path: Path) -> Lines:
    """Lines, and the message of the error that ended reading."""
    found: list[bytes | None] = []
    try:
        found.extend(line for _, line in InputFile(path).lines())
    except InputError as error:
        return found, str(error)
    return found, ""


def read_both(path: Path, content: bytes) -> tuple[Lines, Lines]:
    """What is read of a file with both libraries, and with zlib alone."""
    path.write_bytes(content)
    pytest.importorskip("isal.isal_zlib")
    both = read(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "isal", None)
        return both, read(path)


@pytest.mark.parametrize("kind", FILES)
def test_files_of_all_kinds(tmp_path: Path, kind: str) -> None:
    fast, plain = read_both(tmp_path / "a.jsonl.gz", FILES[kind])
    assert fast == plain


def test_damaged_and_truncated_files(tmp_path: Path) -> None:
    random = Random(0)
    for _ in range(30):
        damaged = bytearray(WHOLE[: random.choice([len(WHOLE), random.randrange(len(WHOLE))])])
        for _ in range(random.randrange(3)):
            damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
        fast, plain = read_both(tmp_path / "a.jsonl.gz", bytes(damaged))
        assert fast == plain, damaged.hex()


def test_a_whole_file_is_read_once(tmp_path: Path) -> None:
    pytest.importorskip("isal.isal_zlib")

    def refuse() -> Iterator[bytes]:
        raise AssertionError("read again")

    assert b"".join(decompressed(".gz", iter([WHOLE[:700], WHOLE[700:]]), refuse)) == LINES


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
    monkeypatch.setattr("nearsim_db.readers.rejects._MAX_LISTED_PER_FILE", 2)
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
