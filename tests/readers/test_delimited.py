"""CSV and TSV: quoting, line numbers, and what is refused."""

import csv
import gzip
import tracemalloc
from functools import partial
from pathlib import Path

import pytest

from nearsim_db.errors import InputError
from nearsim_db.readers import Fields, Source
from nearsim_db.readers.contract import Reading
from nearsim_db.readers.delimited import csv_rows, read_csv
from nearsim_db.readers.input_file import InputFile
from nearsim_db.records import Document, ReadDocument, Reject
from tests.builders import read_files
from tests.builders.read_files import Items

read_bytes = partial(read_files.read_bytes, name="in.csv")


def outcome(reads: Items) -> list[tuple[int, str]]:
    """Line and id, or line and the beginning of the reason."""
    return [
        (read.line, read.reason if isinstance(read, Reject) else read.document.external_id) for read in reads
    ]


def test_empty_cells_of_named_columns_are_null(tmp_path: Path) -> None:
    (read,) = read_bytes(tmp_path, b"id,title,text,body,source,url,published_at\n1,,,b,,,\n")
    assert isinstance(read, ReadDocument)
    assert read.document == Document("1", body="b")


def test_line_number_of_a_row_is_its_first_line(tmp_path: Path) -> None:
    content = (
        b'\xef\xbb\xbf\r\nid,text\r\n1,"two\r\nlines, ""quoted"""\r\n\r\n2,x,y\r\n3,"a\n\n\nb"\r\n4\r\n5,last'
    )
    reads = read_bytes(tmp_path, content)
    assert outcome(reads) == [
        (3, "1"),
        (6, "3 columns where the header has 2"),
        (7, "3"),
        (11, "1 columns where the header has 2"),
        (12, "5"),
    ]
    assert isinstance(reads[0], ReadDocument)
    assert reads[0].document.body == 'two\r\nlines, "quoted"'


def test_bad_rows_are_rejected_and_reading_continues(tmp_path: Path) -> None:
    bad = [b'1,"x"y', b"1,x\ry", b",x", b"1,x,2024-13-01", b"a\x00,x", b"a\xff,x"]
    reads = read_bytes(
        tmp_path, b"id,text\n" + b"".join(row + b"\n2,y\n" for row in bad) + b'2,"open\n3,y\n4,z\n'
    )
    assert [type(read) for read in reads] == [Reject, ReadDocument] * len(bad) + [
        Reject,
        ReadDocument,
        ReadDocument,
    ]
    assert [read.line for read in reads] == list(range(2, 17))


def test_fields_larger_than_the_csv_module_default_are_read(tmp_path: Path) -> None:
    (read,) = read_bytes(tmp_path, b"id,text\n1," + b"x" * 1_000_000)
    assert isinstance(read, ReadDocument)
    assert read.document.body == "x" * 1_000_000


def test_csv_module_limit_is_never_lowered(tmp_path: Path) -> None:
    before = csv.field_size_limit(2**31)
    try:
        read_bytes(tmp_path, b"id,text\n1,x")
        assert csv.field_size_limit() == 2**31
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize("long", [b"2," + b"x" * 400, b'2,"' + b"x\n" * 200 + b'"'])
def test_a_row_beyond_the_limit_is_rejected_and_reading_continues(tmp_path: Path, long: bytes) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b"id,text\n1,x\n" + long + b"\n3,y\n")
    reads = list(read_csv(InputFile(path, limit=300), Fields()))
    assert [type(read) for read in reads] == [ReadDocument, Reject, ReadDocument]
    assert reads[1] == Reject(str(path), 3, "longer than 300 bytes, the maximum for one document")


@pytest.mark.slow("a field of 14 megabytes")
def test_a_quoted_field_far_beyond_the_limit_is_one_reject(tmp_path: Path) -> None:
    path, peaks = tmp_path / "in.csv.gz", []
    for lines in (400_000, 800_000):
        inner = b'5,""not a row"",x\n' * lines
        path.write_bytes(gzip.compress(b'id,text\n1,x\n2,"' + inner + b'"\n3,y\n', 1))
        tracemalloc.start()
        try:
            reads = list(read_csv(InputFile(path, limit=300), Fields()))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert [type(read) for read in reads] == [ReadDocument, Reject, ReadDocument]
        assert reads[1] == Reject(str(path), 3, "longer than 300 bytes, the maximum for one document")
    assert peaks[1] < 1.2 * peaks[0]


@pytest.mark.parametrize(
    ("header", "named"),
    [
        (b"key,text\n", "columns: key, text"),
        (b"id;text\n", "--delimiter ';'"),
        (b"id\ttext\n", "--delimiter tab"),
        (b"id,content\n", "columns: id, content"),
        (b"id,text,text\n", "columns: id, text, text"),
        (b'id,"te"xt\n', "header"),
        (b'id,"text\n1,x\n', "header"),
    ],
)
def test_an_invalid_header_is_an_error(tmp_path: Path, header: bytes, named: str) -> None:
    with pytest.raises(InputError, match=named):
        read_bytes(tmp_path, header + b"1,x\n")


@pytest.mark.parametrize("keep", [True, False])
def test_a_line_of_too_many_cells_is_one_reject(tmp_path: Path, keep: bool) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b'id,text\n1,"a,b\nc"\n2,' + b"ab," * 200 + b'\n3,"a"\n4,' + b"x" * 500 + b"\n")
    rows = list(csv_rows(InputFile(path, max_values=100), ",", keep=keep))
    assert [(line, row) for line, row, _ in rows] == [
        (1, ["id", "text"]),
        (2, ["1", "a,b\nc"]),
        (4, "more than 100 values, the maximum for one document"),
        (5, ["3", "a"]),
        (6, ["4", "x" * 500]),
    ]


def texts_of(path: Path, **reading: str) -> list[str | None]:
    """The texts of the records of a file, the reasons of those that are rejected."""
    reads = list(Source([path], reading=Reading(**reading)))  # type: ignore[arg-type]
    return [read.reason if isinstance(read, Reject) else read.document.body for read in reads]


def test_a_quote_in_tsv_that_is_not_closed_in_its_row_is_a_character(tmp_path: Path) -> None:
    path = tmp_path / "stray.tsv"
    path.write_text('id\ttext\n1\t"Open the door\n2\tShut\n3\tit" now\n4\t"all" of it\n5\t"said, ""so"""\r\n')
    assert texts_of(path) == ['"Open the door', "Shut", 'it" now', '"all" of it', 'said, "so"']


def test_a_quote_in_tsv_that_is_closed_in_a_later_row_is_a_character(tmp_path: Path) -> None:
    path = tmp_path / "merge.tsv"
    path.write_text('id\ttext\n1\t"Open the door\n2\tShut\n3\tit now"\n4\tno\n')
    assert texts_of(path) == ['"Open the door', "Shut", 'it now"', "no"]


def test_cells_of_tsv_may_have_several_lines_without_tabs(tmp_path: Path) -> None:
    path = tmp_path / "lines.tsv"
    path.write_text('id\ttext\n1\t"one\ntwo"\n2\tthree\n')
    assert texts_of(path) == ["one\ntwo", "three"]


@pytest.mark.parametrize("rows", [1, 20_000], ids=["in one block", "in several"])
def test_rows_after_an_unclosed_quote_are_read(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "open.csv"
    later = [f"row {number} of many" for number in range(rows)]
    path.write_text('id,text\n0,"open\n' + "".join(f"{at},{text}\n" for at, text in enumerate(later, 1)))
    reason, *texts = texts_of(path)
    assert reason is not None and "--quote none" in reason
    assert texts == later


def test_lines_in_a_quoted_cell_that_look_like_rows_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "merge.csv"
    path.write_text('id,text\n1,one\n2,"two\n3,three\n4,four"\n5,"five\nlines"\n')
    source = Source([path])
    assert len(list(source)) == 3
    (warning,) = source.warnings
    assert "2 lines" in warning and "lines 3 to 5" in warning and "--quote none" in warning
    assert texts_of(path, quote="none")[:4] == ["one", '"two', "three", 'four"']


def test_cells_may_be_enclosed_by_another_character(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("id,text\n1,'one, \"two\"'\n")
    assert texts_of(path, quote="'") == ['one, "two"']
