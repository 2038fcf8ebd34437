"""JSON lines: which lines become documents, and why others are rejected."""

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nearsim_db.errors import InputError
from nearsim_db.readers import Fields, Source
from nearsim_db.readers.input_file import InputFile
from nearsim_db.readers.jsonl import read_jsonl
from nearsim_db.records import Document, ReadDocument, Reject
from tests.builders.read_files import read_bytes


def read_one(tmp_path: Path, record: object, fields: Fields | None = None) -> ReadDocument:
    (read,) = read_bytes(tmp_path, json.dumps(record).encode(), fields=fields)
    assert isinstance(read, ReadDocument), read
    return read


def test_every_field_is_read(tmp_path: Path) -> None:
    record = {
        "id": "a/1",
        "title": "A title",
        "text": "A text",
        "source": "wire",
        "url": "https://example.org/1",
        "published_at": "2024-05-31T18:00:00+02:00",
        "tags": ["x", {"y": None}],
        "score": 1.5,
    }
    read = read_one(tmp_path, record)
    assert read == ReadDocument(
        Document(
            "a/1",
            "A title",
            "A text",
            "wire",
            "https://example.org/1",
            datetime(2024, 5, 31, 16, tzinfo=UTC),
            {"tags": ["x", {"y": None}], "score": 1.5},
        ),
        str(tmp_path / "in.jsonl"),
        1,
        0,
    )


def test_fields_may_be_renamed_and_shared(tmp_path: Path) -> None:
    fields = Fields(id="link", title="headline", body="content", url="link", published_at="date")
    record = {"link": "u", "headline": "t", "content": "c", "date": "2024-01-02", "text": "x", "id": 7}
    document = read_one(tmp_path, record, fields).document
    assert document == Document(
        "u",
        "t",
        "c",
        url="u",
        published_at=datetime(2024, 1, 2, tzinfo=UTC),
        attributes={"text": "x", "id": 7},
    )


@pytest.mark.parametrize(
    ("record", "body", "attributes"),
    [
        ({"text": "t"}, "t", {}),
        ({"body": "b"}, "b", {}),
        ({"text": "t", "body": "b"}, "t", {"body": "b"}),
        ({"text": None, "body": "b"}, "b", {}),
        ({"text": "", "body": "b"}, "", {"body": "b"}),
        ({"text": "t", "body": None}, "t", {}),
        ({"text": None}, None, {}),
        ({"title": None}, None, {}),
        ({"title": ""}, None, {}),
    ],
)
def test_body_is_read_from_text_or_body(
    tmp_path: Path, record: dict[str, object], body: str | None, attributes: dict[str, object]
) -> None:
    document = read_one(tmp_path, {"id": "1", **record}).document
    assert (document.body, document.attributes) == (body, attributes)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("s", "s"), (7, "7"), (-1, "-1"), (0, "0"), (7.0, "7"), (7.5, "7.5"),
     (2**64, str(2**64)), (10**300, str(10**300)), ("é" * 512, "é" * 512)],
)  # fmt: skip
def test_ids_are_strings_or_numbers(tmp_path: Path, value: object, expected: str) -> None:
    assert read_one(tmp_path, {"id": value, "text": "x"}).document.external_id == expected


def test_an_id_beyond_the_range_of_floats_is_rejected(tmp_path: Path) -> None:
    (read,) = read_bytes(tmp_path, b'{"id": 1e400, "text": "x"}')
    assert isinstance(read, Reject) and "beyond the range of floats" in read.reason


@pytest.mark.parametrize("value", [{"name": "wire"}, 3, ["a"], True])
def test_source_and_url_become_attributes_unless_strings(tmp_path: Path, value: object) -> None:
    document = read_one(tmp_path, {"id": "1", "text": "x", "source": value, "url": value}).document
    assert document.source is None
    assert document.url is None
    assert document.attributes == {"source": value, "url": value}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ("", None),
        ("  ", None),
        ("2024-05-31", datetime(2024, 5, 31, tzinfo=UTC)),
        ("20240531", datetime(2024, 5, 31, tzinfo=UTC)),
        ("2024-05-31T18:30", datetime(2024, 5, 31, 18, 30, tzinfo=UTC)),
        ("2024-05-31 18:30:01.25", datetime(2024, 5, 31, 18, 30, 1, 250000, tzinfo=UTC)),
        ("2024-05-31T18:30:00Z", datetime(2024, 5, 31, 18, 30, tzinfo=UTC)),
        (" 2024-05-31T18:30:00-05:00 ", datetime(2024, 5, 31, 23, 30, tzinfo=UTC)),
    ],
)
def test_published_at_is_iso_8601_with_utc_as_default(
    tmp_path: Path, given: object, expected: datetime | None
) -> None:
    published_at = read_one(tmp_path, {"id": "1", "text": "x", "published_at": given}).document.published_at
    assert published_at == expected
    assert published_at is None or published_at.utcoffset() == timedelta(0)


WITHOUT_ID = [
    b'{"id": "1", "text": ', b'{"id": "1" "text": "x"}', b"plain words", b'{"id": "1', b"[1, 2]", b'"text"', b"null",
    b'{"id": "1", "text": "raw \x00 NUL"}', b"[" * 100_000, b'{"id": ' + b"9" * 5000 + b', "text": "x"}',
    b'{"text": "x"}', b'{"id": null, "text": "x"}', b'{"id": "", "text": "x"}', b'{"id": true, "text": "x"}',
    b'{"id": 1e16, "text": "x"}', b'{"id": NaN, "text": "x"}', b'{"id": ["1"], "text": "x"}',
    b'{"id": "a\\u0000", "text": "x"}', b'{"id": "a\\ud800", "text": "x"}', b'{"id": "a\xff", "text": "x"}',
    b'{"id": "' + b"x" * 1025 + b'", "text": "x"}', b'{"id": "' + "é".encode() * 513 + b'", "text": "x"}',
]  # fmt: skip
WITH_ID = [
    b'{"id": "1", "text": "x", "a": ' + b"[" * 900 + b"]" * 900 + b"}", b'{"id": "1"}', b'{"id": "1", "content": "x"}',
    b'{"id": "1", "text": 5}', b'{"id": "1", "title": ["x"]}', b'{"id": "1", "body": {"x": 1}}',
    b'{"id": "1", "text": "x", "score": NaN}', b'{"id": "1", "text": "x", "score": 1e999}',
    b'{"id": "1", "text": "x", "a": [18446744073709551616]}',
]  # fmt: skip


def test_invalid_lines_are_rejected_with_their_place_and_id(tmp_path: Path) -> None:
    rejects = read_bytes(tmp_path, b"\n\n".join([*WITHOUT_ID, *WITH_ID]))
    ids = [None] * len(WITHOUT_ID) + ["1"] * len(WITH_ID)
    assert [(one.line, one.external_id) for one in rejects if isinstance(one, Reject)] == [
        (1 + 2 * number, external_id) for number, external_id in enumerate(ids)
    ]
    assert all(0 < len(one.reason) < 250 for one in rejects if isinstance(one, Reject))
    assert "character 12" in str(rejects[1])


@pytest.mark.parametrize(
    ("line", "body", "replaced"),
    [
        (b'{"id": "1", "text": "a\\u0000b"}', "a\ufffdb", 1),
        (b'{"id": "1", "text": "a\\ud800b"}', "a\ufffdb", 1),
        (b'{"id": "1", "text": "\\ud83d\\ude00"}', "😀", 0),
        (b'{"id": "1", "text": "caf\xe9 \xff\xfe"}', "caf\ufffd \ufffd\ufffd", 3),
        (b'{"id": "1", "text": "\xef\xbf\xbd"}', "\ufffd", 0),
        (b'{"id": "1", "text": "x", "title": "\\u0000", "source": "\\udfff", "url": "\xff"}', "x", 3),
        (b'{"id": "1", "text": "x", "\\u0000": ["\\ud800", {"k\xff": "\\u0000\\u0000"}]}', "x", 5),
    ],
)
def test_characters_that_cannot_be_stored_are_replaced_and_counted(
    tmp_path: Path, line: bytes, body: str, replaced: int
) -> None:
    (read,) = read_bytes(tmp_path, line)
    assert isinstance(read, ReadDocument)
    assert (read.document.body, read.replaced) == (body, replaced)


def test_lines_are_counted_and_blank_ones_skipped(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf{"id": 1, "text": "x"}\r\n\r\n \t\n{"id": 2, "text": "y"}\nbad\n\n{"id": 3, "text": "z"}'
    reads = read_bytes(tmp_path, content)
    assert [(type(read), read.line) for read in reads] == [
        (ReadDocument, 1),
        (ReadDocument, 4),
        (Reject, 5),
        (ReadDocument, 7),
    ]


def test_a_line_beyond_the_limit_is_rejected_and_reading_continues(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    long = b'{"id": 2, "text": "' + b"x" * 1_000_000 + b'"}'
    path.write_bytes(b'{"id": 1, "text": "x"}\n' + long + b'\n{"id": 3, "text": "y"}\n' + long)
    reads = list(read_jsonl(InputFile(path, limit=1000), Fields()))
    assert [type(read) for read in reads] == [ReadDocument, Reject, ReadDocument, Reject]
    assert reads[1] == Reject(str(path), 2, "longer than 1,000 bytes, the maximum for one document")
    assert reads[3].line == 4


def test_a_line_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    line = b'{"id": 1, "text": "xyz"}'
    path.write_bytes(line + b"\n" + line)
    reads = list(read_jsonl(InputFile(path, limit=len(line)), Fields()))
    assert [type(read) for read in reads] == [ReadDocument, ReadDocument]
    reads = list(read_jsonl(InputFile(path, limit=len(line) - 1), Fields()))
    assert [type(read) for read in reads] == [Reject, Reject]


@pytest.mark.parametrize("path", ["-", "/dev/stdin"])
def test_standard_input_is_json_lines(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"id": 1, "text": "x"}\nbad\n')))
    source = Source([Path(path)])
    reads = list(source)
    assert [(type(read), read.file, read.line) for read in reads] == [
        (ReadDocument, "-", 1),
        (Reject, "-", 2),
    ]
    assert source.total_bytes is None
    assert source.bytes_read == 27
    with pytest.raises(InputError, match="read only once"):
        Source([Path("-"), Path(path)])


def test_a_line_of_too_many_values_is_rejected_unparsed(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(
        b'{"id": 1, "text": "%s"}\n{"id": 2, "vector": [%s1]}\n{"id": 3, "text": "x", "a": %s1%s}\n'
        % (b'\\"[1,' * 150, b"1," * 150, b"[" * 150, b"]" * 150)
    )
    first, *others = read_jsonl(InputFile(path, max_values=100), Fields())
    assert isinstance(first, ReadDocument) and first.document.body == '"[1,' * 150
    assert [one.reason for one in others if isinstance(one, Reject)] == [
        "more than 100 values, the maximum for one document"
    ] * 2
