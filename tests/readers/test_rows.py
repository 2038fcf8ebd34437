"""Files whose records are rows with names: spreadsheets, SQLite, mail, references."""

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import openpyxl
import pytest

from nearsim_db.errors import InputError
from nearsim_db.readers import Fields, Reading, Source
from nearsim_db.records import Document, ReadDocument, Reject

WORKSHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>'


def read(path: Path, fields: Fields | None = None, **reading: object) -> list[ReadDocument | Reject]:
    """The documents and rejects of a file."""
    return list(Source([path], fields or Fields(ids="whole"), reading=Reading(**reading)))  # type: ignore[arg-type]


def documents(path: Path, fields: Fields | None = None, **reading: object) -> list[Document]:
    """The documents of a file, of which no record may be rejected."""
    records = read(path, fields, **reading)
    assert not [record for record in records if isinstance(record, Reject)]
    return [record.document for record in records if isinstance(record, ReadDocument)]


def write_spreadsheet(path: Path, *sheets: Sequence[Sequence[object]]) -> Path:
    """Write a spreadsheet with sheets of some rows, called Sheet, Sheet1 and so on."""
    workbook = openpyxl.Workbook()
    for at, rows in enumerate(sheets):
        sheet = workbook.worksheets[0] if at == 0 else workbook.create_sheet()
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return path


def write_database(path: Path, *statements: str) -> Path:
    """Make a SQLite file."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def test_rows_of_a_spreadsheet_are_documents(tmp_path: Path) -> None:
    header = ["id", "title", "text", "published_at", "price"]
    path = write_spreadsheet(tmp_path / "a.xlsx", [header, [7, "Lamp", "bright", datetime(2024, 1, 2), 9.5]])
    moment = datetime(2024, 1, 2, tzinfo=UTC)
    assert documents(path) == [
        Document("7", "Lamp", "bright", published_at=moment, attributes={"price": 9.5})
    ]


def test_blank_rows_of_a_spreadsheet_count_as_lines(tmp_path: Path) -> None:
    path = write_spreadsheet(tmp_path / "a.xlsx", [[], ["id", "text"], [], [None, "without id"], [2, "two"]])
    assert [(record.line, isinstance(record, Reject)) for record in read(path)] == [(4, True), (5, False)]


def test_a_number_is_a_text_in_a_spreadsheet(tmp_path: Path) -> None:
    path = write_spreadsheet(tmp_path / "a.xlsx", [["id", "title", "text"], [1, 365, 2.5]])
    assert documents(path) == [Document("1", "365", "2.5")]


def test_a_column_without_a_name_has_its_letter(tmp_path: Path) -> None:
    path = write_spreadsheet(tmp_path / "a.xlsx", [["id", "text"], [1, "one", None, "a note"]])
    assert documents(path)[0].attributes == {"D": "a note"}


def test_columns_of_a_spreadsheet_without_a_header_have_numbers(tmp_path: Path) -> None:
    path = write_spreadsheet(tmp_path / "a.xlsx", [["x", "one"]])
    assert documents(path, Fields(id="1", body="2"), has_header=False) == [Document("x", None, "one")]


def test_another_sheet_is_read_by_its_name(tmp_path: Path) -> None:
    path = write_spreadsheet(tmp_path / "a.xlsx", [["id", "text"], [1, "one"]], [["id", "text"], [2, "two"]])
    assert documents(path, table="Sheet1") == [Document("2", None, "two")]
    with pytest.raises(InputError, match=r"no sheet 'Nope'; name another one with --table \(Sheet, Sheet1\)"):
        documents(path, table="Nope")


def test_sheets_that_are_not_read_are_named(tmp_path: Path) -> None:
    path = write_spreadsheet(tmp_path / "a.xlsx", [["id", "text"], [1, "one"]], [["id"]])
    source = Source([path])
    assert len(list(source)) == 1
    assert source.warnings == (
        f"{path} has other sheets, which were not read (Sheet1); --table NAME reads one of them",
    )


def test_a_zip_bomb_is_refused_before_it_is_decompressed(tmp_path: Path) -> None:
    path = write_spreadsheet(tmp_path / "a.xlsx", [["id", "text"], [1, "one"]])
    with ZipFile(path, "a", ZIP_DEFLATED) as archive:
        archive.writestr("xl/more.xml", bytes(11_000_000))
    with pytest.raises(InputError, match=r"decompresses to 11,0.*; save its sheet as CSV"):
        read(path)


def test_a_distant_cell_takes_no_memory_for_the_cells_before_it(tmp_path: Path) -> None:
    path = write_spreadsheet(tmp_path / "a.xlsx", [["id", "text"], [1, "one"]])
    cells = '<row r="1"><c r="A1" t="inlineStr"><is><t>text</t></is></c></row>'
    distant = '<row r="100000"><c r="XFD100000" t="inlineStr"><is><t>far</t></is></c></row>'
    changed = tmp_path / "b.xlsx"
    with ZipFile(path) as archive, ZipFile(changed, "w") as copy:
        for name in archive.namelist():
            is_sheet = name == "xl/worksheets/sheet1.xml"
            copy.writestr(name, WORKSHEET.format(cells + distant) if is_sheet else archive.read(name))
    ((document,)) = documents(changed)
    assert document.attributes == {"XFD": "far"}


@pytest.mark.parametrize("content", [b"", b"id,text\n", b"PK\x03\x04 and nothing more"])
def test_anything_else_is_no_spreadsheet(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.xlsx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot read .*a\.xlsx as \.xlsx"):
        read(path)


def test_the_only_table_of_sqlite_needs_no_name(tmp_path: Path) -> None:
    path = write_database(tmp_path / "a.db", "CREATE TABLE t AS SELECT 1 AS id, 'one' AS text, 9.5 AS price")
    assert documents(path) == [Document("1", None, "one", attributes={"price": 9.5})]


def test_one_of_several_tables_of_sqlite_has_to_be_named(tmp_path: Path) -> None:
    path = write_database(
        tmp_path / "a.sqlite",
        'CREATE TABLE "a ""b"" c" AS SELECT 1 AS id, \'one\' AS text',
        "CREATE TABLE t (id)",
    )
    with pytest.raises(InputError, match="has 2 tables; name one with --table"):
        read(path)
    with pytest.raises(InputError, match="has no table 'nope'; name another one with --table"):
        read(path, table="nope")
    assert documents(path, table='a "b" c') == [Document("1", None, "one")]


def test_a_query_selects_rows_of_sqlite(tmp_path: Path) -> None:
    path = write_database(tmp_path / "a.db", "CREATE TABLE t AS SELECT 1 AS number, 'one' AS name")
    assert documents(path, query="SELECT number AS id, name AS text FROM t") == [Document("1", None, "one")]


def test_a_query_cannot_write_to_sqlite(tmp_path: Path) -> None:
    path = write_database(tmp_path / "a.db", "CREATE TABLE t AS SELECT 1 AS id, 'one' AS text")
    with pytest.raises(InputError, match="readonly database"):
        read(path, query="DELETE FROM t")


def test_text_of_sqlite_that_is_not_utf8_is_replaced_and_counted(tmp_path: Path) -> None:
    path = write_database(
        tmp_path / "a.db", "CREATE TABLE t AS SELECT 1 AS id, CAST(x'61ff0062' AS TEXT) AS text"
    )
    (record,) = read(path)
    assert isinstance(record, ReadDocument)
    assert (record.document.body, record.replaced) == ("a\ufffd\ufffdb", 2)


def test_a_damaged_sqlite_file_keeps_the_rows_before(tmp_path: Path) -> None:
    path = write_database(
        tmp_path / "a.db",
        "CREATE TABLE t AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n LIMIT 2000) "
        "SELECT id, 'some text of this row' AS text FROM n",
    )
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] + b"\xff" * (len(content) - len(content) // 2))
    found: list[ReadDocument | Reject] = []
    with pytest.raises(InputError, match=r"as SQLite after [0-9,]+ complete rows: .* malformed"):
        found.extend(Source([path], Fields(ids="whole")))
    assert len(found) > 100


def test_a_message_has_its_subject_plain_text_date_and_id(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_bytes(
        b"From: Ada <ada@example.org>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nMessage-ID: <1@example.org>\r\n"
        b"Date: Tue, 02 Jan 2024 10:00:00 +0100\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\r\nF\xe4hre\r\n"
    )
    assert documents(path) == [
        Document(
            "1@example.org",
            "Grüße",
            "Fähre\n",
            published_at=datetime(2024, 1, 2, 9, tzinfo=UTC),
            attributes={"from": "Ada <ada@example.org>"},
        )
    ]


def test_the_plain_part_of_a_message_is_preferred(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    parts = "--X\nContent-Type: text/html\n\n<p>as HTML</p>\n--X\nContent-Type: text/plain\n\nplain\n--X--\n"
    path.write_text(f"Content-Type: multipart/alternative; boundary=X\n\n{parts}")
    assert [document.body for document in documents(path)] == ["plain"]


def test_html_is_read_as_text_where_a_message_has_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_text("Content-Type: text/html\n\n<p>as <b>HTML</b></p>\n")
    assert [(document.body or "").strip() for document in documents(path)] == ["as HTML"]


def test_messages_of_an_mbox_begin_after_an_empty_line(tmp_path: Path) -> None:
    path = tmp_path / "a.mbox"
    path.write_text(
        "From a Tue\nSubject: one\n\nnot\nFrom here\n>From there\n\nFrom b Tue\nMessage-ID: <2>\nSubject: two\n\nlast\n"
    )
    assert [(document.external_id, document.title, document.body) for document in documents(path)] == [
        (f"{path}:1", "one", "not\nFrom here\nFrom there\n"),
        ("2", "two", "last"),
    ]


def test_a_message_without_a_header_is_rejected_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.mbox"
    path.write_text("From a Tue\nSubject: one\n\ntext\n\nFrom b Tue\n\nno header\n")
    _, reject = read(path)
    assert reject == Reject(str(path), 6, "not a message: it has no header")


def test_a_message_in_an_unknown_or_wrong_encoding_is_read_with_replacements(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_bytes(b"Subject: =?nope?q?a?=\nContent-Type: text/plain; charset=nope\n\nF\xe4hre\0")
    (record,) = read(path)
    assert isinstance(record, ReadDocument)
    assert (record.document.title, record.document.body) == ("=?nope?q?a?=", "F\ufffdhre\ufffd")


def test_a_header_of_raw_bytes_is_utf8_with_replacements(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_bytes(b"Subject: caf\xc3\xa9 \xff bar\n\ntext\n")
    assert [document.title for document in documents(path)] == ["caf\xe9 \ufffd bar"]


def test_a_very_long_encoded_header_is_not_decoded(tmp_path: Path) -> None:
    path, words = tmp_path / "a.eml", " ".join(["=?utf-8?q?a?="] * 2_000)
    path.write_text(f"Subject: {words}\n\ntext\n")
    assert [document.title for document in documents(path)] == [words]


def test_a_file_of_another_kind_is_no_mbox(tmp_path: Path) -> None:
    path = tmp_path / "a.mbox"
    path.write_text("id,text\n")
    with pytest.raises(InputError, match="is not an mbox file: it does not begin with 'From '"):
        read(path)


def test_references_have_their_title_abstract_authors_and_day(tmp_path: Path) -> None:
    path = tmp_path / "a.ris"
    path.write_text(
        "TY  - JOUR\nID  - 7\nT1  - The lamp\nAU  - Ada, A.\nAU  - Bob, B.\nAB  - It was lit\n  at dusk.\nPY  - 2021\n"
        "DA  - 2021/09/30/\nDO  - 10.1/x\nER  - \n"
    )
    others = {"type": "JOUR", "authors": "Ada, A.; Bob, B.", "year": "2021", "doi": "10.1/x"}
    moment = datetime(2021, 9, 30, tzinfo=UTC)
    assert documents(path) == [
        Document("7", "The lamp", "It was lit at dusk.", published_at=moment, attributes=others)
    ]


def test_text_outside_of_references_is_rejected_once(tmp_path: Path) -> None:
    path = tmp_path / "a.ris"
    path.write_text("an introduction\nof two lines\n\nTY  - BOOK\nTI  - one\nTY  - BOOK\nTI  - two\nER  - \n")
    reject, *references = read(path)
    assert isinstance(reject, Reject)
    assert (reject.line, reject.reason.startswith("outside of a reference")) == (1, True)
    assert [record.line for record in references] == [4, 6]


BIBTEX = """% a comment = {x}
@string{lamps = "Journal of Lamps"}
@comment{@article{no, title = {x}}}
@article{ada2021,
  author = {Ada, A. and M{\\"u}ller, B.},
  title = {The {Lamp}},
  abstract = "It was lit
      at 50% of dusk, \\emph{always}.",
  journal = lamps, year = 2021, month = sep, doi = {10.1/x\\_y},
  url = {https://example.org/~ada\\%20x},
}
@book{, title = {No key}, date = {1999}}
"""


def test_entries_of_bibtex_have_their_title_abstract_authors_and_date(tmp_path: Path) -> None:
    path = tmp_path / "a.bib"
    path.write_text(BIBTEX)
    others = {
        **{"type": "article", "authors": "Ada, A.; Müller, B.", "year": "2021", "month": "sep"},
        **{"journal": "Journal of Lamps", "doi": "10.1/x_y"},
    }
    first, second = documents(path)
    assert first == Document(
        "ada2021",
        "The Lamp",
        "It was lit at 50% of dusk, always.",
        url="https://example.org/~ada%20x",
        published_at=datetime(2021, 9, 1, tzinfo=UTC),
        attributes=others,
    )
    assert (second.external_id, second.published_at) == (f"{path}:12", datetime(1999, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("value", ["{\\url{https://example.org/x}}", '"\\url {https://example.org/x}"'])
def test_the_address_in_a_url_command_of_bibtex_is_read(tmp_path: Path, value: str) -> None:
    path = tmp_path / "a.bib"
    path.write_text(f"@misc{{a, title = {{Lamps}}, url = {value}}}\n")
    (entry,) = documents(path)
    assert entry.url == "https://example.org/x"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("@article{a, title = {never closed", "Unexpected"),
        ("@article{a, title = {one } much}, year = 2001}", "braces are not balanced"),
        ("@article{title = {x}}", "comma after entry key"),
        ("@article{a, title = {" + "{\\emph" * 3000 + "}" * 3000 + "}}", "nested too deeply"),
    ],
)
def test_a_damaged_entry_of_bibtex_is_rejected_and_takes_no_other_with_it(
    tmp_path: Path, entry: str, reason: str
) -> None:
    path = tmp_path / "a.bib"
    path.write_text(f"{entry}\n@book{{b, title = {{ok}}}}\n")
    reject, book = read(path)
    assert isinstance(reject, Reject) and isinstance(book, ReadDocument)
    assert reject.line == 1 and reason in reject.reason
    assert (book.document.external_id, book.line) == ("b", 2)


def test_entries_of_bibtex_with_one_key_or_a_field_twice_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "a.bib"
    path.write_text("@book{b, title = {one}}\n@book{b, title = {two}, title = {three}}\n")
    assert [document.title for document in documents(path)] == ["one", "two"]


def test_a_file_without_entries_is_no_bibtex(tmp_path: Path) -> None:
    path = tmp_path / "a.bib"
    path.write_text("id,text\n")
    (reject,) = read(path)
    assert isinstance(reject, Reject) and reject.reason.startswith("no entry of BibTeX")


@pytest.mark.parametrize("suffix", [".xlsx", ".db"])
def test_a_compressed_file_of_tables_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"\x1f\x8b\x08 and so on")
    with pytest.raises(InputError, match="is compressed; decompress the file first"):
        read(path)


def test_a_folder_of_messages_is_read_as_records(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.eml").write_text(f"Subject: {name}\n\ntext of {name}\n")
    assert [document.title for document in documents(tmp_path)] == ["a", "b"]


def damaged(content: bytes, seed: int) -> bytes:
    """A file in which some bytes are changed, added, removed or repeated."""
    chance, damaged = random.Random(seed), bytearray(content)
    for _ in range(chance.randint(1, 10)):
        at = chance.randrange(len(damaged) + 1)
        match chance.randrange(4):
            case 0:
                damaged[at : at + 1] = chance.randbytes(1)
            case 1:
                damaged[at:at] = chance.randbytes(20)
            case 2:
                del damaged[at : at + chance.randint(1, 100)]
            case _:
                damaged[at:at] = damaged[max(0, at - 200) : at]
    return bytes(damaged)


MESSAGE = b"Subject: caf\xc3\xa9 =?utf-8?q?=C3=A9?=\nMessage-ID: <a>\nContent-Type: text/plain; charset=utf-8\n\ntext\n"
CONTENTS = {
    ".eml": MESSAGE,
    ".mbox": b"From a Tue\n%b\nFrom b Tue\n%b" % (MESSAGE, MESSAGE),
    ".ris": b"TY  - JOUR\nID  - 7\nTI  - The lamp\nAU  - Ada\nAU  - Bob\nAB  - It was\n  lit.\nER  - \n",
    ".bib": BIBTEX.encode(),
}


@pytest.mark.parametrize("suffix", [".eml", ".mbox", ".ris", ".bib", ".db", ".xlsx"])
def test_damaged_files_are_refused_or_have_rejects(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    if suffix == ".xlsx":
        write_spreadsheet(path, [["id", "text"], *([number, f"text {number}"] for number in range(20))])
    elif suffix == ".db":
        write_database(path, "CREATE TABLE t AS SELECT 1 AS id, 'one' AS text")
    else:
        path.write_bytes(CONTENTS[suffix])
    content = path.read_bytes()
    for seed in range(60):
        path.write_bytes(damaged(content, seed))
        with suppress(InputError):
            read(path, table="t" if suffix == ".db" else None)
