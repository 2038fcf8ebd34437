"""Properties of all input: written files read back equal, and no bytes make a reader fail."""

import csv
import io
import json
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from nearsim_db.readers import Source
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
