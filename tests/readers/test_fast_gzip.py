"""Gzip files read with ISA-L and with zlib alone: the same content, and the same error at the same place."""

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from nearsim_db.errors import InputError
from nearsim_db.readers.decoding import decompressed
from nearsim_db.readers.input_file import InputFile

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
