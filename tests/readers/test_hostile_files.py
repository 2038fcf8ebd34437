"""A megabyte of hostile content is read, or refused with the reason, in about a second of processor time."""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard

from nearsim_db.errors import InputError
from nearsim_db.readers import Source
from nearsim_db.records import ReadDocument, Reject
from tests.builders.cpu_time import cpu_seconds

MEGABYTE = 1_000_000
MOST_SECONDS = 5  # at most a fifth of that on an idle core; what takes quadratic time takes minutes
SECONDS = {"bomb.txt.gz": 10.0, "bomb.jsonl.zst": 10.0}


def lines_of_keys(count: int) -> bytes:
    """An object with many keys of bytes that are not UTF-8, all equal once they are replaced."""
    keys = (bytes([0x80 + number // 127, 0x80 + number % 127]) for number in range(count))
    return b'{"id":1,"text":"t",' + b",".join(b'"' + key + b'":1' for key in keys) + b"}"


FILES: dict[str, Callable[[], bytes]] = {
    "arrays.jsonl": lambda: b'{"id":1,"text":"t","a":' + b"[" * MEGABYTE,
    "closed.jsonl": lambda: (
        b'{"id":1,"text":"t","a":' + b"[" * 90 + b"]" * 90 + b"," + b'"b":[' + b"[]," * 300_000 + b"1]}"
    ),
    "objects.jsonl": lambda: b'{"a":' * (MEGABYTE // 5),
    "number.jsonl": lambda: b'{"id":1,"text":"t","a":' + b"9" * MEGABYTE + b"}",
    "vector.jsonl": lambda: b'{"id":1,"text":"t","vector":[' + b"9" * MEGABYTE + b"]}",
    "vectors.jsonl": lambda: b'{"id":1,"text":"t","vector":[' + b",".join([b"9" * 300] * 3_000) + b"]}",
    "mixed.jsonl": lambda: b'{"id":1,"text":"t","vector":[' + b"1," * 400_000 + b"null]}",
    "keys.jsonl": lambda: lines_of_keys(120 * 127),
    "escapes.jsonl": lambda: b'{"id":1,"text":"' + b"\\ud800" * (MEGABYTE // 6) + b'"}',
    "instant.jsonl": lambda: b'{"id":1,"text":"t","published_at":"' + b"2" * MEGABYTE + b'"}',
    "id.jsonl": lambda: b'{"text":"t","id":"' + b"i" * MEGABYTE + b'"}',
    "empty.jsonl": lambda: b"\n" * MEGABYTE,
    "broken.jsonl": lambda: b"{\n" * (MEGABYTE // 2),
    "unquoted.jsonl": lambda: b'{"a":x\n' * (MEGABYTE // 7),
    "undecodable.jsonl": lambda: b"{\xff\xff\xff\xff}\n" * (MEGABYTE // 7),
    "words.jsonl": lambda: b"abcdefg\n" * (MEGABYTE // 8),
    "array.json": lambda: b"[" * MEGABYTE,
    "elements.json": lambda: b"[" + b"1," * (MEGABYTE // 2) + b"1]",
    "cell.csv": lambda: b"id,text\n1," + b"a" * MEGABYTE,
    "quote.csv": lambda: b'id,text\n1,"' + b"a\n" * (MEGABYTE // 2),
    "quotes.csv": lambda: b'id,text\n1,"' + b'""' * (MEGABYTE // 2) + b'"',
    "misplaced.csv": lambda: b"id,text\n" + b'"a"b,c\n' * (MEGABYTE // 8),
    "columns.csv": lambda: (
        b"id,text," + b",".join(b"c%d" % number for number in range(MEGABYTE // 8)) + b"\n1\n"
    ),
    "commas.csv": lambda: b"id,text\n" + b"," * MEGABYTE,
    "vector.csv": lambda: b'id,text,vector\n1,t,"' + b"[" * MEGABYTE + b'"',
    "returns.csv": lambda: b"id,text\n" + b"\r" * MEGABYTE,
    "nul.csv": lambda: b"id,text\n" + b"\0" * MEGABYTE,
    "bytes.txt": lambda: b"\x80" * MEGABYTE,
    "members.txt.gz": lambda: gzip.compress(b"") * (MEGABYTE // 20),
    "frames.txt.zst": lambda: zstandard.compress(b"") * (MEGABYTE // 10),
    "damaged.txt.gz": lambda: gzip.compress(np.random.default_rng(1).bytes(MEGABYTE))[:-9] + b"\0" * 9,
    "bomb.txt.gz": lambda: gzip.compress(b"a" * 100 * MEGABYTE, 1),
    "bomb.jsonl.zst": lambda: zstandard.compress(b"a" * 250 * MEGABYTE),
}


SLOW = pytest.mark.slow("about a second each")
SLOW_ONES = (
    "closed.jsonl", "broken.jsonl", "elements.json", "misplaced.csv", "bomb.txt.gz", "bomb.jsonl.zst", "quote.csv"
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SLOW if name in SLOW_ONES else ()) for name in FILES]
)
def test_a_hostile_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name]())
    read: list[ReadDocument | Reject] = []

    def read_all() -> None:
        try:
            read.extend(Source([path]))
        except InputError as error:
            read.append(Reject(name, 0, str(error)))

    assert cpu_seconds(read_all) < SECONDS.get(name, MOST_SECONDS)
    for one in read:
        if isinstance(one, Reject):
            assert 0 < len(one.reason) < 1_000
        else:
            json.dumps(one.document.attributes)


CALLS = {
    "blank.csv": (b"", b"\n", 0.1),
    "bytes.csv": (b"id,text\n", b"a\n", 5),
    "commas.tsv": (b"id\ttext\n", b"\t\n", 5),
    "empty.csv": (b"id,text\n", b"1,\n", 7),
    "quoted.csv": (b"id,text\n", b'"1",""\n', 7),
    "vectors.csv": (b"id,vector\n", b"1,[1]\n", 17),
    "numbers.json": (b"[1,", b"1,", 5),
    "objects.json": (b"[1,", b"{},\n", 9),
    "blank.jsonl": (b"", b"\n", 0.1),
    "bytes.jsonl": (b"", b"1\n", 3),
    "short.jsonl": (b"", b"{}\n", 3),
    "words.jsonl": (b"", b"abcdefg\n", 6),
    "unquoted.jsonl": (b"", b'{"a":x\n', 6),
    "plain.jsonl": (b"", b'{"id":"1","title":"a","text":"b"}\n', 8),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_for_each_record(name: str, tmp_path: Path) -> None:
    """Function calls in Python, whose number does not depend on the machine."""
    begin, record, most = CALLS[name]
    path = tmp_path / name
    path.write_bytes(begin + record * 2_000 + b"1]" * name.endswith(".json"))
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        read = list(Source([path]))
    finally:
        sys.setprofile(None)
    assert len(read) in (0, 2_000, 2_002)
    assert calls / 2_000 <= most + 0.3
