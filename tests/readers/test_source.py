"""Files of every format and compression: refusals, damage and progress."""

import bz2
import gzip
import io
import json
import lzma
import os
import threading
from _thread import interrupt_main
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from nearsim_db.errors import InputError
from nearsim_db.readers import Fields, Reading, Source
from nearsim_db.readers.arrow import TABLES
from nearsim_db.readers.source import READERS
from nearsim_db.records import ReadDocument, Reject
from tests.builders.read_files import as_nobody
from tests.builders.selection import some_combinations

Compress = Callable[[bytes], bytes]
COMPRESSIONS: dict[str, Compress] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
SQUEEZED = sorted(COMPRESSIONS.items())[1:]


def json_lines(first: int, end: int) -> bytes:
    return b"".join(b'{"id": %d, "text": "the text number %d"}\n' % (i, i * i) for i in range(first, end))


def read_until_error(path: Path) -> tuple[list[str], str]:
    """The ids that were read, and the error's message."""
    ids = []
    with pytest.raises(InputError) as caught:
        for read in Source([path]):
            assert isinstance(read, ReadDocument)
            ids.append(read.document.external_id)
    return ids, str(caught.value)


CONTENTS = {
    ".jsonl": b'{"id": "a", "text": "x"}\n',
    ".ndjson": b'{"id": "a", "text": "x"}\n',
    ".json": b'{"id": "a", "text": "x"}\n',
    ".csv": b"id,text\na,x\n",
    ".tsv": b"id\ttext\na\tx\n",
    ".eml": b"Message-ID: <a>\n\nx",
    ".mbox": b"From a\nMessage-ID: <a>\n\nx",
    ".bib": b"@article{a, abstract = {x}}\n",
    ".ris": b"TY  - JOUR\nID  - a\nAB  - x\nER  - \n",
}
NOT_COMPRESSED = {*TABLES, ".xlsx", ".sqlite", ".sqlite3", ".db"}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("kind", sorted(set(READERS) - NOT_COMPRESSED))
def test_every_format_is_read_with_every_compression(tmp_path: Path, kind: str, compression: str) -> None:
    path = tmp_path / f"a{kind}{compression}"
    path.write_bytes(COMPRESSIONS[compression](CONTENTS.get(kind, b"x")))
    source = Source([path])
    (read,) = source
    assert isinstance(read, ReadDocument)
    assert read.document.external_id == ("a" if kind in CONTENTS else path.name)
    assert read.document.body == "x"
    assert source.bytes_read == source.total_bytes == path.stat().st_size


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("kind", CONTENTS)
def test_an_empty_file_has_no_documents(tmp_path: Path, kind: str, compression: str) -> None:
    path = tmp_path / f"a{kind}{compression}"
    path.touch()
    assert list(Source([path])) == []


@pytest.mark.parametrize(("suffix", "compress"), SQUEEZED)
def test_a_file_of_several_compressed_parts_is_read_whole(
    tmp_path: Path, suffix: str, compress: Compress
) -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    data = json_lines(0, 5000)
    parts = [data[:100], data[100:100_000], b"", data[100_000:]]
    path.write_bytes(b"".join(map(compress, parts)))
    assert len(list(Source([path]))) == 5000


def damaged(kind: str, compress: Compress) -> tuple[bytes, int]:
    """Compressed JSON lines with this damage, and how many lines are before it at least."""
    whole = compress(json_lines(0, 3000))
    match kind:
        case "a cut part":
            return whole + compress(json_lines(3000, 3010))[:-1], 3000
        case "a wrong checksum":
            return whole[:-4] + bytes(one ^ 0xFF for one in whole[-4:]), 3000
        case "garbage":
            return whole + compress(json_lines(3000, 3050)) + b"neither gzip nor zstd", 3050
    long = compress(json_lines(0, 60_000))  # three blocks of bzip2
    return long[: len(long) // 2], 5000


@some_combinations(
    ("suffix", [suffix for suffix, _ in SQUEEZED]),
    ("kind", ["a wrong checksum", "a cut part", "garbage", "half"]),
    ("is_named", [True, False]),
)
def test_lines_before_damage_are_kept(tmp_path: Path, kind: str, suffix: str, is_named: bool) -> None:
    path = tmp_path / f"a.jsonl{suffix if is_named else ''}"
    content, least = damaged(kind, COMPRESSIONS[suffix])
    path.write_bytes(content)
    ids, message = read_until_error(path)
    assert ids == [str(number) for number in range(len(ids))]
    assert len(ids) >= least
    assert f"after {len(ids):,} complete lines" in message


def test_a_row_truncated_within_quotes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b'id,text\n1,x\n2,"y\nz')[:-1])
    ids, message = read_until_error(path)
    assert ids == ["1"]
    assert "after 3 complete lines" in message


def test_bytes_read_grows_to_the_total_and_restarts(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    first.write_bytes(json_lines(0, 20_000))
    second.write_bytes(gzip.compress(json_lines(0, 20_000)))
    source = Source([first, second])
    for _ in range(2):
        seen = [source.bytes_read for _ in source]
        assert seen == sorted(seen)
        assert 0 < seen[0] < first.stat().st_size
        assert len(set(seen)) > 10
        assert source.bytes_read == source.total_bytes == first.stat().st_size + second.stat().st_size


def test_files_are_read_in_the_order_given(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"id": "{name}", "text": "x"}}\nbad\n')
    paths = [tmp_path / "b.jsonl", tmp_path / "a.jsonl"]
    reads = [(read.file, read.line, type(read)) for read in Source(paths)]
    assert reads == [
        (str(path), line, kind) for path in paths for line, kind in ((1, ReadDocument), (2, Reject))
    ]
    assert [read.file for read in Source(paths).read(paths[1])] == [str(paths[1])] * 2


@pytest.mark.parametrize("name", ["a.orc", "a", "a.gz", "a.jsonl.lz4", ".jsonl"])
def test_an_unknown_file_type_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(
        InputError, match=r"unknown file type of .*; nearsim reads \.jsonl .*\.csv .* \.gz or \.zst"
    ):
        Source([tmp_path / name])


def test_a_file_without_read_permission_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.touch(mode=0o000)
    with as_nobody(), pytest.raises(InputError, match=r"cannot read .*a\.jsonl: Permission denied; "):
        Source([path])


def test_deleted_file_is_an_error_after_the_records_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(json_lines(0, 3))
    source = Source([path])
    path.unlink()
    with pytest.raises(
        InputError, match=r"cannot read .*: No such file or directory, after 0 complete lines"
    ):
        list(source)


def test_size_of_the_content_is_estimated(tmp_path: Path) -> None:
    content = b"".join(b'{"id": "%d", "text": "story %d of many"}\n' % (at, at * 7919) for at in range(5_000))
    plain, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    assert Source([plain, plain]).content_bytes == 2 * len(content)
    assert Source([packed]).content_bytes == pytest.approx(len(content), rel=0.6)
    assert Source([Path("-"), plain]).content_bytes is None


def test_an_interruption_just_before_a_read_of_a_pipe_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    ended = threading.Event()

    def end() -> None:
        ended.set()
        os.close(write_end)

    os.write(write_end, b'{"id": 1, "text": "x"}\n')
    stream = io.TextIOWrapper(os.fdopen(read_end, "rb"))
    monkeypatch.setattr("sys.stdin", stream)
    records = iter(Source([Path("-")], reading=Reading(".jsonl")))
    next(records)
    # Notes a signal without interrupting a system call, as one does that arrives just before the call.
    interruption = threading.Timer(0.1, interrupt_main)
    ending = threading.Timer(10, end)
    interruption.start()
    ending.start()
    with stream, pytest.raises(KeyboardInterrupt):
        next(records)
    assert not ended.is_set()
    ending.cancel()
    os.close(write_end)


def test_binary_files_get_no_advice_on_encodings(tmp_path: Path) -> None:
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)) * 10)
    (tmp_path / "latin.txt").write_bytes("Köln".encode("latin-1"))
    source = Source([tmp_path])
    assert [type(one) for one in source] == [Reject, ReadDocument]
    (warning,) = source.warnings
    assert warning.startswith(f"{tmp_path / 'latin.txt'} is not UTF-8")


JOINED: list[dict[str, str | None]] = [
    {"id": "both", "summary": "one", "content": "two"},
    {"id": "first", "summary": "one", "content": ""},
    {"id": "second", "summary": None, "content": "two"},
]


@pytest.mark.parametrize("kind", [".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow"])
def test_title_and_body_join_several_fields_by_line_ends(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a{kind}"
    rows = pyarrow.Table.from_pylist(JOINED)
    if kind == ".parquet":
        pyarrow.parquet.write_table(rows, path)
    elif kind == ".arrow":
        with pyarrow.ipc.new_file(path, rows.schema) as writer:
            writer.write_table(rows)
    elif kind in (".csv", ".tsv"):
        mark = "," if kind == ".csv" else "\t"
        cells = [list(JOINED[0]), *([value or "" for value in record.values()] for record in JOINED)]
        path.write_text("".join(mark.join(row) + "\n" for row in cells))
    else:
        lines = [json.dumps(row) for row in JOINED]
        path.write_text("\n".join(lines) if kind == ".jsonl" else f"[{','.join(lines)}]")

    reads = list(Source([path], Fields(title="content,summary", body="summary,content")))

    documents = [read.document for read in reads if isinstance(read, ReadDocument)]
    assert [(each.title, each.body, each.attributes) for each in documents] == [
        ("two\none", "one\ntwo", {}),
        ("one", "one", {}),
        ("two", "two", {}),
    ]


def test_a_field_whose_name_has_a_comma_is_one_field(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,"a,b",a,b\n1,whole,x,y\n')
    (read,) = Source([path], Fields(body="a,b"))
    assert isinstance(read, ReadDocument) and read.document.body == "whole"


def test_a_record_without_any_of_the_joined_fields_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1, "title": "t"}\n{"id": 2, "a": true, "b": "x"}\n')
    reasons = [read.reason for read in Source([path], Fields(body="a,b")) if isinstance(read, Reject)]
    assert reasons == [
        "no 'a,b', which --body-field names",
        "'a' is true or false, True; it must be a string or null",
    ]
