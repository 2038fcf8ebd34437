"""Hostile content, and files of which a few bytes stand for very many: reading is bounded, the rest refused."""

import gzip
import json
import sys
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from nearsim_db.errors import InputError
from nearsim_db.readers import Source, arrow_values, parquet
from nearsim_db.readers.arrow_values import slices_of
from nearsim_db.readers.parquet import batches_of, open_parquet
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


LONG = "x" * 5_000
ROWS = 150


def runs(lengths: list[int], values: pyarrow.Array) -> pyarrow.Array:
    return pyarrow.RunEndEncodedArray.from_arrays(
        pyarrow.array(list(accumulate(lengths)), pyarrow.int32()), values
    )


def lists(size: int, values: pyarrow.Array, count: int = ROWS) -> pyarrow.Array:
    ends = np.arange(0, size * (count + 1), size, dtype=np.int32)
    return pyarrow.ListArray.from_arrays(pyarrow.array(ends), values)


def of_dictionary(count: int) -> pyarrow.Array:
    return pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0] * count, pyarrow.int32()), pyarrow.array([LONG, ""])
    )


def zeros(count: int) -> pyarrow.Array:
    return pyarrow.array(np.zeros(count, np.int8))


def views(size: int) -> pyarrow.Array:
    sizes = pyarrow.array([size] * ROWS, pyarrow.int32())
    return pyarrow.ListViewArray.from_arrays(pyarrow.array([0] * ROWS, pyarrow.int32()), sizes, zeros(size))


COLUMNS: dict[str, Any] = {
    "text": pyarrow.array([LONG] * ROWS),
    "large text with nulls": pyarrow.array([None, LONG] * (ROWS // 2), pyarrow.large_string()),
    "bytes": pyarrow.array([LONG.encode()] * ROWS),
    "fixed bytes": pyarrow.array([LONG.encode()] * ROWS, pyarrow.binary(len(LONG))),
    "text view": pyarrow.array([LONG] * ROWS, pyarrow.string_view()),
    "dictionary": of_dictionary(ROWS),
    "dictionary of lists": pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0] * ROWS, pyarrow.int32()), lists(500, zeros(500), 1)
    ),
    "runs": runs([50, 99, 1], pyarrow.array([LONG, LONG, "short"])),
    "lists": lists(500, zeros(500 * ROWS)),
    "lists of a dictionary": lists(2, of_dictionary(2 * ROWS)),
    "fixed lists": pyarrow.FixedSizeListArray.from_arrays(zeros(500 * ROWS), 500),
    "list views": views(500),
    "structures": pyarrow.StructArray.from_arrays([lists(400, zeros(400 * ROWS)), zeros(ROWS)], ["a", "b"]),
    "maps": pyarrow.array([[(LONG, 1)]] * ROWS, pyarrow.map_(pyarrow.string(), pyarrow.int64())),
    "unions": pyarrow.UnionArray.from_sparse(zeros(ROWS), [pyarrow.array([LONG] * ROWS)]),
}


def python_size(value: object) -> int:
    """The characters of all texts in a value, and a number of bytes for anything else."""
    match value:
        case str() | bytes():
            return len(value)
        case dict():
            return python_size(list(value.items()))
        case list() | tuple():
            return sum(map(python_size, value))
        case _:
            return 8


@pytest.mark.parametrize("kind", COLUMNS)
def test_batches_are_cut_by_what_they_decode_to(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_values, "BYTES_AT_ONCE", 100_000)
    batch = pyarrow.record_batch({"column": COLUMNS[kind]}).slice(10)
    slices = list(slices_of(batch))
    assert [row for one in slices for row in one.to_pylist()] == batch.to_pylist()
    assert max(python_size(one.to_pylist()) for one in slices) <= 100_000
    assert 2 <= len(slices) < batch.num_rows


@pytest.mark.parametrize("kind", ["lists", "dictionary", "views"])
def test_a_row_that_is_too_large_once_decoded_is_one_reject(tmp_path: Path, kind: str) -> None:
    count = 6_000_000
    values = {
        "lists": lists(count, zeros(count), 1),
        "dictionary": lists(count // 100, of_dictionary(count // 100), 1),
        "views": views(count).slice(0, 1),
    }[kind]
    nothing = pyarrow.nulls(1, values.type)
    options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
    table = pyarrow.table(
        {"id": ["1", "2", "3"], "text": ["one"] * 3, "a": pyarrow.chunked_array([nothing, values, nothing])}
    )
    with pyarrow.ipc.new_stream(tmp_path / "a.arrow", table.schema, options=options) as writer:
        writer.write_table(table)
    first, second, third = Source([tmp_path / "a.arrow"])
    assert isinstance(first, ReadDocument) and isinstance(third, ReadDocument)
    assert isinstance(second, Reject) and second.line == 2 and "200,000,000 bytes" in second.reason


def test_a_row_group_with_too_many_values_is_refused(tmp_path: Path) -> None:
    path, count = tmp_path / "a.parquet", 6_000_000
    table = pyarrow.table({"id": ["1"], "text": ["one"], "a": lists(count, zeros(count), 1)})
    pyarrow.parquet.write_table(table, path)
    with pytest.raises(InputError, match=r"row group 1 of .* has 6,000,000 values in lists in 1 row,"):
        list(Source([path]))


def test_a_row_group_with_too_many_bytes_is_refused_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    texts = ["".join(map(chr, range(at, at + 2_000))) for at in (0x4E00, 0x5E00)]
    pyarrow.parquet.write_table(pyarrow.table({"id": ["1", "2"], "text": texts}), path)
    monkeypatch.setattr(parquet, "MAX_RECORD_BYTES", 1_000)
    refusal = r"row group 1 of \S+ has \d\d,\d{3} bytes in 2 rows, .* at most 1,000 bytes per row$"
    with pytest.raises(InputError, match=refusal):
        list(Source([path]))


@pytest.mark.parametrize("nested", ["structure", "list"])
def test_a_long_text_that_a_nested_column_repeats_is_in_memory_once(tmp_path: Path, nested: str) -> None:
    path = tmp_path / "a.parquet"
    texts = pyarrow.array(["x" * 2_000_000]).take(pyarrow.array([0] * 64))
    inner = pyarrow.StructArray.from_arrays([texts], ["x"]) if nested == "structure" else lists(1, texts, 64)
    pyarrow.parquet.write_table(pyarrow.table({"id": list(range(64)), "text": ["a"] * 64, "a": inner}), path)
    opened = open_parquet(path)
    sizes = [batch.get_total_buffer_size() for batch in batches_of(opened, path)]
    opened.close()
    assert max(sizes) < 10_000_000
    assert [one.document.attributes for one in Source([path]) if isinstance(one, ReadDocument)][63]
