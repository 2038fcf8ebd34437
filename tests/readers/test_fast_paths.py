"""Readers give the documents and rejects that `DocumentMaker` makes of records parsed by the standard library."""

import csv
import io
import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from nearsim_db.readers import Fields, Source
from nearsim_db.readers.document_maker import DocumentMaker
from nearsim_db.records import ReadDocument, Reject

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
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | DATES | LONG,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
RECORDS = st.dictionaries(st.sampled_from(COLUMNS), TEXTS | DATES | VECTORS | VALUES, min_size=1)
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
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=kind[1], lineterminator="\n").writerows([header, *rows])
    name, reads = reads_of("a" + kind[0], stream.getvalue().encode("utf-8", "surrogateescape"), fields)
    maker = DocumentMaker(name, fields)
    line, expected = 2, []
    for row in rows:
        expected.append(maker.make(record_of(header, row, maker, fields), line))
        line += 1 + sum(cell.count("\n") for cell in row)
    assert reads == expected


def record_of(header: list[str], row: list[str], maker: DocumentMaker, fields: Fields) -> dict[str, object]:
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
