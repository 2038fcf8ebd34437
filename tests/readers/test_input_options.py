"""Options for files of other forms: the array within an object, lines, columns without a header, paths in arrays."""

import json
from pathlib import Path

import pytest

from nearsim_db.errors import InputError
from nearsim_db.readers import Fields, Reading, Source
from nearsim_db.records import ReadDocument, Reject

CHAT = {
    "messages": [
        {"role": "user", "content": "how do I reset the boiler"},
        {"role": "assistant", "content": "hold the key"},
    ]
}


def documents(path: Path, fields: Fields | None = None, **reading: object) -> list[tuple[str, str | None]]:
    """The ids and bodies of a file, of which no record may be rejected."""
    read = list(Source([path], fields or Fields(ids="whole"), reading=Reading(**reading)))  # type: ignore[arg-type]
    assert all(isinstance(record, ReadDocument) for record in read), read
    return [
        (record.document.external_id, record.document.body)
        for record in read
        if isinstance(record, ReadDocument)
    ]


def rejected(path: Path, fields: Fields | None = None) -> str:
    """The reason for which the only record of a file is rejected."""
    (reject,) = Source([path], fields or Fields(ids="whole"))
    assert isinstance(reject, Reject)
    return reject.reason


@pytest.mark.parametrize("indent", [None, 2])
def test_records_in_an_array_within_an_object(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "a.json"
    tickets = [{"id": "1", "text": "one"}, {"id": "2", "text": "two"}]
    path.write_text(
        json.dumps({"meta": {"tickets": []}, "data": {"tickets": tickets, "n": 2}}, indent=indent)
    )
    assert documents(path, records="data.tickets") == [("1", "one"), ("2", "two")]
    with pytest.raises(InputError, match=r"has no 'data\.other', which --records names"):
        documents(path, records="data.other")
    with pytest.raises(InputError, match="'meta', which --records names, is not an array"):
        documents(path, records="meta")


def test_an_object_of_records_is_refused_with_the_option(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{\n  "page": 1,\n  "tickets": [\n    {"id": 1, "text": "one"}\n  ]\n}\n')
    with pytest.raises(InputError, match=r"--records tickets$"):
        documents(path)
    path.write_text('{"tickets": [{"id": 1, "text": "one"}]}')
    assert "JSON file: --records tickets" in rejected(path)


def test_an_array_of_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('["the first text",\n "the second"]')
    assert documents(path) == [(f"{path}:1", "the first text"), (f"{path}:2", "the second")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("messages.content", "how do I reset the boiler\nhold the key"),
        ("messages.0.content", "how do I reset the boiler"),
        ("messages[-1].content", "hold the key"),
    ],
)
def test_paths_go_into_arrays(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(CHAT))
    assert documents(path, Fields(body=name, ids="whole")) == [(f"{path}:1", text)]


def test_a_place_that_an_array_lacks_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(CHAT))
    assert "no 'messages[2].content'" in rejected(path, Fields(body="messages[2].content", ids="whole"))
    assert "--body-field messages.KEY" in rejected(path)


def test_each_line_is_a_document(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"first line\r\n\n  \nsecond, with \xff\n")
    assert documents(path, format=".lines") == [
        (f"{path}:1", "first line"),
        (f"{path}:4", "second, with \ufffd"),
    ]


def test_a_text_of_many_short_lines_gets_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a line of the log\n" * 1_001)
    source = Source([path])
    assert len(list(source)) == 1
    assert source.warnings == (
        f"{path} is one document of 1,001 short lines; if each line is a document, give --input-format lines",
    )
    path.write_text("a line of the text\n" * 1_000)
    source = Source([path])
    assert len(list(source)) == 1 and source.warnings == ()


def test_the_lines_of_a_page_are_no_documents(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("<p>a line of the page</p>\n" * 1_001)
    source = Source([path])
    assert len(list(source)) == 1 and source.warnings == ()


@pytest.mark.parametrize("format", [".txt", ".html", ".xml"])
def test_a_named_format_of_texts_holds_for_every_file_of_a_folder(tmp_path: Path, format: str) -> None:
    for name in ("a.rst", "b.log", "c.txt", ".hidden", "_SUCCESS"):
        (tmp_path / name).write_text(f"text of {name}")
    assert [name for name, _ in documents(tmp_path, format=format)] == ["a.rst", "b.log", "c.txt"]


def test_columns_without_a_header_have_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,the first text\ny,the second\n")
    fields = Fields(id="1", body="2")
    assert documents(path, fields, has_header=False) == [("x", "the first text"), ("y", "the second")]


def test_an_escape_precedes_quotes_and_delimiters_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,text\n1,"say \\"one\\", two"\n2,a\\,b\n')
    assert documents(path, escape="\\") == [("1", 'say "one", two'), ("2", "a,b")]


def test_rows_that_begin_with_the_comment_character_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('# of the shop, "2024\nid,text\n1,one\n#2,two\n3,three\n')
    assert documents(path, comment="#") == [("1", "one"), ("3", "three")]


def test_lines_of_a_quoted_cell_are_no_comments(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,text\n1,"a page\n# Title\n"\n')
    assert documents(path, comment="#") == [("1", "a page\n# Title\n")]


def test_comments_count_as_lines_also_after_a_row_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,text\n# one\n1,"two" and\n# three\n2,four\n5\n')
    read = list(Source([path], Fields(ids="whole"), reading=Reading(comment="#")))
    assert [(record.line, isinstance(record, Reject)) for record in read] == [
        (3, True),
        (5, False),
        (6, True),
    ]


def test_numbers_are_a_part_of_a_text_that_joins_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1, "name": "Lamp", "watts": 60, "price": 9.5, "text": "bright"}\n')
    assert documents(path, Fields(body="name,watts,price,text")) == [("1", "Lamp\n60\n9.5\nbright")]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet", ".arrow"])
def test_a_pointer_of_git_lfs_is_refused_by_name(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    with pytest.raises(InputError, match="pointer of Git LFS, not the file itself; run: git lfs pull"):
        documents(path)
