"""Targets: readers of files, each record an input; compressed and Parquet files, each file an input."""

import gzip
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.input_file import InputFile
from nearsim_db.readers.source import READERS
from nearsim_db.readers.vectors import checked_vector
from nearsim_db.records import ReadDocument, Reject
from tests.fuzz.contract import Check, Target, Texts
from tests.fuzz.parquet import draw_files

_JSON = [
    '{"id":', '{"id":"a","text":"', '"}', "}", "{", "[", "]", ":", ",", '"', '"id"', '"title"', '"text"',
    '"body"', '"vector"', '"published_at"', '"source"', '"url"', "null", "true", "NaN", "-Infinity", "1",
    "-0", "1.5", "1e999", "9" * 20, "9" * 5_000, "18446744073709551615", "18446744073709551616",
    '"2024-05-31T18:00:00Z"', '"9999-12-31T23:59:59-12"', '"0001-01-01"', "\\ud800", "\\u0000", "\\",
    "\udc80", "\udcff", "\x00", "é", "😀", "\ufeff", " ", "\n", "\r", "[" * 120, '{"a":' * 120,
]  # fmt: skip
_CELLS = [
    '"', '""', ",", "\t", "\n", "\r", "\r\n", "a", "1", "[1,2]", "[1e39]", "id", "text", "\udc80", "\x00",
    "é", " ", ";",
]  # fmt: skip
_HEADERS = [
    "id,text",
    "id,title,vector,extra",
    "id,text,published_at",
    'id,"te""xt",text',
    "id\ttext\tvector",
    "id,text,id",
]
_RECORDS = [
    '{"id":"a","title":"b","text":"c","vector":[1,2.5],"published_at":"2024-05-31","source":"s","url":"u","more":{"x":[1]}}',
    '{"id":7,"body":"text","published_at":null,"source":3}',
]
_ROWS = ['1,"one, two",2024-05-31', "2,text,", "3\ttext\t[1]", 'x,"a\nb",""']


def _is_storable(text: str) -> bool:
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text)


def _check_record(record: ReadDocument | Reject) -> None:
    if isinstance(record, Reject):
        assert record.reason and _is_storable(record.reason)
        return
    document = record.document
    texts = (document.external_id, document.title, document.body, document.source, document.url)
    written = json.dumps(document.attributes, ensure_ascii=False, allow_nan=False)
    assert all(_is_storable(text) for text in (*texts, written) if text is not None)
    assert document.published_at is None or 1 <= document.published_at.year <= 9999


def _read(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    suffix = path.suffixes[0]
    with suppress(InputError):
        for record in READERS[suffix](InputFile(path), Fields()):
            _check_record(record)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def check_lines(folder: Path, texts: Sequence[str], rng: random.Random) -> None:
    """Lines of JSON, or an array, become documents that can be stored, or rejects with a reason."""
    _read(folder / "a.jsonl", b"\n".join(map(_encoded, texts)))
    for begin in range(0, len(texts), 10):
        _read(folder / "a.json", b"[" + b",".join(map(_encoded, texts[begin : begin + 10])) + b"]")


def check_rows(folder: Path, texts: Sequence[str], rng: random.Random) -> None:
    """Rows below a header, with commas or tabs, as `check_lines`."""
    header = rng.choice(_HEADERS)
    _read(folder / ("a.tsv" if "\t" in header else "a.csv"), _encoded("\n".join([header, *texts])))


def check_compressed(folder: Path, texts: Sequence[str], rng: random.Random) -> None:
    """Compressed files of several members, damaged at random."""
    compress: dict[str, Callable[[bytes], bytes]] = {
        ".gz": partial(gzip.compress, compresslevel=1, mtime=0),
        ".zst": zstandard.compress,
    }
    for text in texts:
        suffix = rng.choice([".gz", ".zst"])
        content = bytearray(b"".join(compress[suffix](_encoded(text)) for _ in range(rng.choice([1, 1, 3]))))
        for _ in range(rng.choice([0, 1, 1, 4])):
            content[rng.randrange(len(content))] = rng.randrange(256)
        _read(folder / f"a.jsonl{suffix}", bytes(content[: rng.choice([None, rng.randrange(len(content))])]))


def check_parquet(folder: Path, contents: Sequence[bytes], rng: random.Random) -> None:
    """Parquet files with columns of any type, some damaged, become documents, rejects or an InputError."""
    for content in contents:
        _read(folder / "a.parquet", content)


def check_vectors(values: Sequence[object], rng: random.Random) -> None:
    """A vector is refused with an InputError, or has finite 32-bit floats only."""
    for value in values:
        with suppress(InputError):
            found = checked_vector(value, "the vector")
            assert found is None or (len(found) > 0 and np.isfinite(np.frombuffer(found, np.float32)).all())


def draw_vectors(rng: random.Random, count: int) -> list[object]:
    """Return lists, arrays and other values."""
    items: list[Any] = [0, 1.5, -1, 10**400, 2**128, 3.5e38, float("nan"), float("inf"), 1e-50]
    items += [True, None, "1", [1], {}, b"1"]
    makers: Sequence[Callable[[list[object]], object]] = (
        list, tuple, np.array, lambda row: rng.choice(items), lambda row: np.ones((len(row), 2)),
        lambda row: [*row[:-1], row], lambda row: np.array(row, dtype=object),
        lambda row: np.array(row, rng.choice(["f2", "i1", "u8", "c8", "?"])),
    )  # fmt: skip
    drawn: list[object] = []
    for _ in range(count):
        numbers = rng.random() < 0.7
        row = rng.choices([*items[:3], 3.5e38] if numbers else items, k=rng.randrange(6))
        try:
            with np.errstate(all="ignore"):
                drawn.append(rng.choice(makers)(row))
        except (ValueError, TypeError, OverflowError):
            drawn.append(row)
    return drawn


@contextmanager
def _in_folder(check: Callable[[Path, Sequence[Any], random.Random], None]) -> Iterator[Check]:
    with tempfile.TemporaryDirectory() as folder:
        yield partial(check, Path(folder))


FILES = {
    "json-lines": Target(Texts(_RECORDS, _JSON), lambda: _in_folder(check_lines), 1_000),
    "delimited": Target(Texts(_ROWS, _CELLS), lambda: _in_folder(check_rows), 1_000),
    "parquet": Target(draw_files, lambda: _in_folder(check_parquet), 50),
    "vectors": Target(draw_vectors, lambda: nullcontext(check_vectors), 2_000),
    "compressed": Target(Texts(_RECORDS, _JSON), lambda: _in_folder(check_compressed), 100),
}
