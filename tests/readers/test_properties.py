"""Properties of all input: written files read back equal, and fast readers give what the standard library's give."""

import csv
import io
import json
import re
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nearsim_db.readers import Fields, Source
from nearsim_db.readers.document_maker import DocumentMaker
from nearsim_db.records import Document, ReadDocument, Reject

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
FILLED = st.none() | TEXT.filter(bool)
INSTANTS = st.none() | st.datetimes(
    datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.sampled_from([UTC])
)  # fmt: skip
NAMED = {"id", "title", "text", "body", "source", "url", "published_at", "vector"}
NAMES = TEXT.filter(lambda name: name not in NAMED)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXT
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def documents(
    text: st.SearchStrategy[str | None], attributes: st.SearchStrategy[object]
) -> st.SearchStrategy[Document]:
    return st.builds(
        Document,
        external_id=TEXT.filter(bool),
        title=text,
        body=text,
        source=text,
        url=text,
        published_at=INSTANTS,
        attributes=attributes,
    )


def record_of(document: Document) -> dict[str, object]:
    return {
        "id": document.external_id,
        "title": document.title,
        "text": document.body,
        "source": document.source,
        "url": document.url,
        "published_at": document.published_at and document.published_at.isoformat(),
        **document.attributes,
    }


def read_back(name: str, content: bytes) -> Sequence[ReadDocument | Reject]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        return list(Source([path]))


@settings(deadline=None)
@given(
    st.lists(documents(st.none() | TEXT, st.dictionaries(NAMES, VALUES, max_size=3)), max_size=5),
    st.booleans(),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
)
def test_documents_round_trip_through_json_lines(
    given: list[Document], ascii_only: bool, ending: str
) -> None:
    lines = [json.dumps(record_of(document), ensure_ascii=ascii_only) + ending for document in given]
    reads = read_back("a.jsonl", "".join(lines).encode())
    assert [read.document for read in reads if isinstance(read, ReadDocument)] == given
    assert [read.line for read in reads] == [1 + i * ending.count("\n") for i in range(len(given))]


@settings(deadline=None)
@given(st.data(), st.lists(NAMES, max_size=3, unique=True), st.sampled_from([(".csv", ","), (".tsv", "\t")]))
def test_documents_round_trip_through_delimited_files(
    data: st.DataObject, names: list[str], kind: tuple[str, str]
) -> None:
    attributes = st.fixed_dictionaries(dict.fromkeys(names, TEXT))
    given = data.draw(st.lists(documents(FILLED, attributes), max_size=5))
    # Between tabs, a quoted cell with a tab after a line end is taken for rows that contain quotes.
    values = [str(value) for document in given for value in record_of(document).values()]
    assume(kind[1] == "," or not any(re.search(r"[\r\n].*\t", value, re.DOTALL) for value in values))
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=kind[1])
    header = list(record_of(Document("header", attributes=dict.fromkeys(names))))
    writer.writerow(header)
    lines = []
    for document in given:
        lines.append(stream.getvalue().count("\n") + 1)
        writer.writerow([record_of(document)[name] for name in header])
    reads = read_back("a" + kind[0], stream.getvalue().encode())
    assert [read.document for read in reads if isinstance(read, ReadDocument)] == given
    assert [read.line for read in reads] == lines


FIELDS = st.sampled_from(
    [
        Fields(),
        Fields(id="key", title="headline", body="content", published_at="at", vector="embedding"),
        Fields(body="body"),
        Fields(id="url", title="text", source="title"),
        Fields(vector="text"),
        Fields(published_at="title"),
    ]
)
COLUMNS = [
    "id", "key", "title", "headline", "text", "body", "content", "source", "url", "published_at", "at",
    "vector", "embedding", "pages", "naïve \udcff",
]  # fmt: skip


# "\udcff" and "\udcc3" are written as bytes that are not UTF-8.
TEXTS = st.text(
    st.sampled_from(["a", "7", "é", "漢", " ", '"', "\\", "\n", "\t", ",", "\0", "\udcff", "\udcc3"])
)


DATES = st.sampled_from(
    ["2024-05-31", " 2024-05-31T18:00:00Z ", "0001-01-01T00:00:00+14:00", "31.5.2024", "", " "]
)
NUMBERS = (
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([2**64, 1e300, -0.0])
)
VECTORS = st.lists(
    st.integers(-9, 9) | st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20
)
LONG = st.integers(250, 1100).map("é".__mul__)
PARSED = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | DATES | LONG,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
RECORDS = st.dictionaries(st.sampled_from(COLUMNS), TEXTS | DATES | VECTORS | PARSED, min_size=1)
CELLS = (
    TEXTS
    | DATES
    | LONG
    | VECTORS.map(json.dumps)
    | st.sampled_from(
        ["", "[1,", "[NaN]", "[1e999]", '["a"]', "null", "7", "tall", "[" * 2000, "[9007199254740993]"]
    )
)


def reads_of(name: str, content: bytes, fields: Fields) -> tuple[str, list[ReadDocument | Reject]]:
    """Return the path of a file with this content, and what is read from it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        return str(path), list(Source([path], fields))


@settings(deadline=None)
@given(st.lists(st.tuples(RECORDS, st.booleans()), min_size=1, max_size=4), FIELDS)
def test_json_lines(given: list[tuple[dict[str, object], bool]], fields: Fields) -> None:
    lines = [
        json.dumps(record, ensure_ascii=is_ascii).encode("utf-8", "surrogateescape")
        for record, is_ascii in given
    ]
    name, reads = reads_of("a.jsonl", b"\n".join(lines), fields)
    maker = DocumentMaker(name, fields)
    records = [json.loads(line.decode("utf-8", "surrogateescape")) for line in lines]
    assert reads == [maker.make(record, number) for number, record in enumerate(records, 1)]


@settings(deadline=None)
@given(
    st.data(),
    st.lists(st.sampled_from(COLUMNS), unique=True, max_size=8),
    st.sampled_from([(".csv", ","), (".tsv", "\t")]),
    FIELDS,
)
def test_rows(data: st.DataObject, others: list[str], kind: tuple[str, str], fields: Fields) -> None:
    required = [fields.id, data.draw(st.sampled_from([fields.title, fields.body or "text", fields.vector]))]
    header = data.draw(st.permutations(list(dict.fromkeys([*required, *others]))))
    rows = data.draw(st.lists(st.lists(CELLS, min_size=len(header), max_size=len(header)), max_size=4))
    # A tab after a line end within a cell shows that its quote is a character.
    assume(kind[1] != "\t" or not any("\t" in cell.partition("\n")[2] for row in rows for cell in row))
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=kind[1], lineterminator="\n").writerows([header, *rows])
    name, reads = reads_of("a" + kind[0], stream.getvalue().encode("utf-8", "surrogateescape"), fields)
    maker = DocumentMaker(name, fields)
    line, expected = 2, []
    for row in rows:
        expected.append(maker.make(parsed_record(header, row, maker, fields), line))
        line += 1 + sum(cell.count("\n") for cell in row)
    assert reads == expected


def parsed_record(
    header: list[str], row: list[str], maker: DocumentMaker, fields: Fields
) -> dict[str, object]:
    """Return a row as a record: an empty cell of a named column is null, a vector is parsed if it is JSON."""
    record: dict[str, object] = {
        name: None if not cell and name in maker.named else cell
        for name, cell in zip(header, row, strict=True)
    }
    if isinstance(cell := record.get(fields.vector), str):
        try:
            record[fields.vector] = json.loads(cell)
        except (ValueError, RecursionError):
            record[fields.vector] = cell
    return record
