"""Parquet: which rows become documents, with which values, and why others are rejected."""

import datetime
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from nearsim_db.errors import InputError
from nearsim_db.readers import Fields, Source
from nearsim_db.readers.input_file import InputFile
from nearsim_db.readers.parquet import read_parquet
from nearsim_db.records import ReadDocument, Reject

Columns = dict[str, object]
NANOSECONDS = 1717178400123456789  # of 2024-05-31, 18:00 UTC


def written(tmp_path: Path, columns: Columns, **options: object) -> Path:
    path = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    return path


def read(path: Path, fields: Fields | None = None) -> list[ReadDocument | Reject]:
    return list(Source([path], fields or Fields()))


def attributes(tmp_path: Path, values: object) -> list[object]:
    rows = read(written(tmp_path, {"id": ["1", "2"], "text": ["t", "t"], "value": values}))
    return [one.document.attributes["value"] for one in rows if isinstance(one, ReadDocument)]


def test_columns_become_fields(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {
            "id": pyarrow.array([1, 2], pyarrow.int32()),
            "title": ["A title", None],
            "text": pyarrow.array(["A text", "B"]).dictionary_encode(),
            "source": ["wire", None],
            "url": ["https://example.org/1", None],
            "published_at": pyarrow.array([NANOSECONDS, None], pyarrow.timestamp("ns", "Europe/Berlin")),
            "pages": [12, None],
        },
    )
    first, second = read(path)
    assert isinstance(first, ReadDocument) and isinstance(second, ReadDocument)
    one = first.document
    assert (one.external_id, one.title, one.body, one.source) == ("1", "A title", "A text", "wire")
    assert one.url == "https://example.org/1"
    assert one.published_at == datetime.datetime(2024, 5, 31, 18, 0, 0, 123456, datetime.UTC)
    assert (one.attributes, first.file, first.line) == ({"pages": 12}, str(path), 1)
    assert (second.document.title, second.document.published_at, second.line) == (None, None, 2)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([datetime.date(2024, 5, 31), None], ["2024-05-31", None]),
        (
            pyarrow.array([NANOSECONDS, 0], pyarrow.timestamp("ns")),
            ["2024-05-31T18:00:00.123456", "1970-01-01T00:00:00"],
        ),
        ([datetime.time(1, 2, 3), None], ["01:02:03", None]),
        ([datetime.timedelta(minutes=1), None], [60.0, None]),
        ([Decimal("1.10"), None], ["1.10", None]),
        ([0.5, float("nan")], [0.5, None]),
        ([b"bytes", None], ["bytes", None]),
        ([[1, 2], []], [[1, 2], []]),
        ([["a"], None], [["a"], None]),
        ([{"a": {"b": [1.5]}}, None], [{"a": {"b": [1.5]}}, None]),
        (
            pyarrow.array([[("a", 1), ("b", 2)], None], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
            [{"a": 1, "b": 2}, None],
        ),
        (
            pyarrow.array(
                [{"at": [NANOSECONDS]}, None], pyarrow.struct({"at": pyarrow.list_(pyarrow.timestamp("ns"))})
            ),
            [{"at": ["2024-05-31T18:00:00.123456"]}, None],
        ),
    ],
    ids=str,
)
def test_other_columns_become_attributes(tmp_path: Path, values: object, expected: list[object]) -> None:
    assert attributes(tmp_path, values) == expected


@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.list_(pyarrow.float32()),
        pyarrow.list_(pyarrow.float16()),
        pyarrow.large_list(pyarrow.float64()),
        pyarrow.list_(pyarrow.float32(), 2),
        pyarrow.list_(pyarrow.int16()),
    ],
    ids=str,
)
def test_vectors_are_lists_of_numbers(tmp_path: Path, kind: pyarrow.DataType) -> None:
    vectors = pyarrow.array([[1, 2], None, [3, -4]], kind)
    rows = read(written(tmp_path, {"id": ["1", "2", "3"], "vector": vectors, "title": ["t"] * 3}))
    found = [one.document.vector for one in rows if isinstance(one, ReadDocument)]
    assert [one if one is None else list(one) for one in found] == [[1.0, 2.0], None, [3.0, -4.0]]


def test_bad_rows_are_rejected_with_their_number(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {
            "id": ["a", None, "c", "d", "e", "f"],
            "text": ["t"] * 6,
            "vector": pyarrow.array(
                [[float("nan")], [1], [None], [], [1e300], [1]], pyarrow.list_(pyarrow.float64())
            ),
            "at": pyarrow.array([0, 0, 0, 0, 0, 2**60], pyarrow.timestamp("ms")),
        },
    )
    rejects = read(path)
    assert [(one.line, one.external_id) for one in rejects if isinstance(one, Reject)] == [
        (1, "a"), (2, None), (3, "c"), (4, "d"), (5, "e"), (6, None),
    ]  # fmt: skip
    assert "'at'" in str(rejects[5])


def test_invalid_utf8_is_replaced_and_counted(tmp_path: Path) -> None:
    text = pyarrow.Array.from_buffers(
        pyarrow.string(),
        1,
        [None, pyarrow.array([0, 3], pyarrow.int32()).buffers()[1], pyarrow.py_buffer(b"a\xffb")],
    )
    (one,) = read(written(tmp_path, {"id": ["1"], "text": text}))
    assert isinstance(one, ReadDocument)
    assert (one.document.body, one.replaced) == ("a\ufffdb", 1)


def test_file_is_read_in_batches_with_progress_in_bytes(tmp_path: Path) -> None:
    rows = 2_000
    path = written(tmp_path, {"id": list(range(rows)), "text": ["t"] * rows}, row_group_size=300)
    source = Source([path])
    before = 0
    for number, one in enumerate(source, 1):
        assert one.line == number
        assert before <= source.bytes_read <= path.stat().st_size
        before = source.bytes_read
    assert number == rows
    assert source.bytes_read == source.total_bytes == path.stat().st_size


@pytest.mark.parametrize(
    "table",
    [
        pyarrow.table({"key": ["1"], "text": ["t"]}),
        pyarrow.table({"id": ["1"], "note": ["t"]}),
        pyarrow.Table.from_arrays([pyarrow.array(["1"])] * 3, names=["id", "text", "text"]),
    ],
    ids=["no id", "no text", "duplicate names"],
)
def test_tables_without_the_columns_are_refused_with_their_names(
    tmp_path: Path, table: pyarrow.Table
) -> None:
    pyarrow.parquet.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(InputError, match="columns: " + ", ".join(table.column_names)):
        read(tmp_path / "in.parquet")


def test_damage_is_reported_after_the_records_before_it(tmp_path: Path) -> None:
    rows = 2_000
    path = written(
        tmp_path,
        {"id": [f"{at:08}" for at in range(rows)], "text": ["t"] * rows},
        row_group_size=500,
        compression="zstd",
    )
    content = bytearray(path.read_bytes())
    at = pyarrow.parquet.ParquetFile(path).metadata.row_group(2).column(0).data_page_offset
    content[at : at + 200] = bytes(200)
    path.write_bytes(content)
    given = []
    with pytest.raises(InputError, match=r"is damaged .*, after 1,000 complete rows"):
        for one in Source([path]):
            given.append(one)
    assert len(given) == 1_000


@pytest.mark.parametrize("name", ["in.parquet", "in.parquet.gz"])
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"id": "1"}\n')
    with pytest.raises(InputError, match="Parquet"):
        read(tmp_path / name)


def test_column_names_that_are_not_utf8(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": ["1"], "text": ["t"], "unusual": [1]}, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"unusual", b"unu\xa0ual"))
    with pytest.raises(InputError, match="Parquet"):
        read(path)


def test_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, {"id": ["1"], "text": ["t"]})
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match="requires the package pyarrow; pip install"):
        Source([path])


@pytest.mark.parametrize("columns", ["plain", "dictionary"])
def test_a_long_text_that_a_small_file_repeats_is_in_memory_once(tmp_path: Path, columns: str) -> None:
    texts = pyarrow.array(["x" * 3_000_000] * 30, pyarrow.large_string())
    given = texts.dictionary_encode() if columns == "dictionary" else texts
    path = written(
        tmp_path,
        {"id": list(map(str, range(30))), "text": given, "source": ["a", None] * 15},
        compression="zstd",
        dictionary_pagesize_limit=50_000_000,
        store_schema=columns == "dictionary",
    )
    assert path.stat().st_size < 10_000
    before, found = pyarrow.total_allocated_bytes(), 0
    for one in Source([path]):
        assert isinstance(one, ReadDocument) and len(one.document.body or "") == 3_000_000
        assert pyarrow.total_allocated_bytes() - before < 40_000_000
        found += 1
    assert found == 30


def test_a_row_beyond_the_limit_is_rejected(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": ["1", "2", "3"], "text": ["x", "y" * 400, "z"]})
    found = list(read_parquet(InputFile(path, limit=300), Fields()))
    assert [type(one) for one in found] == [ReadDocument, Reject, ReadDocument]
    assert found[1] == Reject(str(path), 2, "longer than 300 bytes, the maximum for one document")


READ_DAMAGED = """
import sys
from pathlib import Path
from nearsim_db.errors import InputError
from nearsim_db.readers import Source
path = Path(sys.argv[1])
whole = path.read_bytes()
for at in range(len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), len(whole) - 8):
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
    try:
        list(Source([path]))
    except InputError:
        pass
"""


def test_no_damaged_byte_of_the_footer_ends_the_process(tmp_path: Path) -> None:
    """In a process of its own, as pyarrow may abort it."""
    path = written(tmp_path, {"id": ["1", "2"], "text": ["one", "two"]}, store_schema=False)
    ended = subprocess.run([sys.executable, "-c", READ_DAMAGED, str(path)], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
