"""Remaining documents in the format that they were read with: bytes, columns and types are those of the input."""

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nearsim_db.deduplication.kept_records import copy_unique, open_unique, output_encoding
from nearsim_db.errors import InputError
from nearsim_db.readers import Fields, Reading, Source
from nearsim_db.readers.inputs import Input
from nearsim_db.readers.writers.file_format import FileFormat
from nearsim_db.records import ReadDocument

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
ROWS = st.lists(st.tuples(TEXT.filter(bool), TEXT, TEXT), max_size=6)
HEADER = ("id", "text", "more, or less")


def copied(
    source: Source, output: Path, positions: Sequence[tuple[int, int]], format: FileFormat | None = None
) -> None:
    """Write the records at the positions, and assert that they are counted."""
    inputs = [Input(source, path) for path in source.paths]
    encoding = output_encoding(inputs, output, format)
    origins = {
        part: np.array([position for other, position in positions if other == part])
        for part in {part for part, _ in positions}
    }
    with open_unique(inputs, output, encoding) as writer:
        counts = list(copy_unique(inputs, origins, writer, encoding.delimiter))
    assert counts == sorted(counts) and (counts[-1:] or [0]) == [len(positions)]


def kept_of(rows: Sequence[object], chosen: Sequence[bool]) -> list[int]:
    return [at for at in range(len(rows)) if at < len(chosen) and chosen[at]]


@settings(deadline=None, max_examples=30)
@given(
    ROWS, st.lists(st.booleans(), max_size=6), st.sampled_from([",", ";"]), st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)  # fmt: skip
def test_rows_of_csv_are_copied_byte_for_byte(
    rows: list[tuple[str, ...]], chosen: list[bool], delimiter: str, ending: str, quoting: int
) -> None:
    def line(row: tuple[str, ...]) -> bytes:
        stream = io.StringIO(newline="")
        csv.writer(stream, delimiter=delimiter, quoting=quoting, lineterminator=ending).writerow(row)  # type: ignore[arg-type]
        return stream.getvalue().encode()

    # Before Python 3.13 csv leaves a lone carriage return without quotes, which is not valid CSV.
    assume(
        quoting == csv.QUOTE_ALL or "\r" in ending or not any("\r" in cell for row in rows for cell in row)
    )
    kept = kept_of(rows, chosen)
    with TemporaryDirectory() as folder:
        path, output = Path(folder, "in.csv.gz"), Path(folder, "out")
        path.write_bytes(gzip.compress(b"".join(map(line, [HEADER, *rows]))))
        source = Source([path], reading=Reading(delimiter=delimiter))
        assert [read.line > 0 for read in source if isinstance(read, ReadDocument)].count(True) <= len(rows)
        copied(source, output, [(0, at) for at in kept])
        assert output.read_bytes() == b"".join(map(line, [HEADER, *(rows[at] for at in kept)]))


@settings(deadline=None, max_examples=20)
@given(ROWS, st.lists(st.booleans(), max_size=6), st.sampled_from(["parquet", "arrow", "folder"]))
def test_rows_of_tables_keep_their_schema(rows: list[tuple[str, ...]], chosen: list[bool], kind: str) -> None:
    schema = pyarrow.schema(
        [
            pyarrow.field("id", pyarrow.large_string()),
            pyarrow.field("text", pyarrow.string(), metadata={"a": "b"}),
            pyarrow.field("n", pyarrow.list_(pyarrow.int16())),
        ],
        metadata={"made by": "a test"},
    )
    columns = [[row[0] for row in rows], [row[1] for row in rows], [[len(row[2])] for row in rows]]
    table = pyarrow.table(columns, schema=schema)
    kept = kept_of(rows, chosen)
    with TemporaryDirectory() as folder:
        path, output = Path(folder, f"in.{kind}"), Path(folder, "out")
        if kind == "arrow":
            with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_stream(sink, schema) as writer:
                writer.write_table(table, max_chunksize=2)
        elif kind == "folder":
            path.mkdir()
            half = len(rows) // 2
            pyarrow.parquet.write_table(table.slice(0, half), path / "a.parquet")
            pyarrow.parquet.write_table(table.slice(half), path / "b.parquet")
        else:
            pyarrow.parquet.write_table(table, path, row_group_size=2)
        copied(Source([path]), output, [(0, at) for at in kept])
        found = pyarrow.parquet.read_table(output)
    assert found.schema.equals(schema)
    assert found.to_pylist() == table.take(pyarrow.array(kept, pyarrow.int64())).to_pylist()


RECORDS = [
    {"id": 1, "text": "a", "n": 1, "tags": ["x"], "on": True},
    {"id": 2, "text": "b", "n": 2.5, "tags": "x", "deep": {"a": {}}},
    {"id": 3, "text": "=c", "n": None},
]


@pytest.mark.parametrize("kind", ["jsonl", "json"])
def test_json_becomes_every_other_format(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"in.{kind}"
    lines = [json.dumps(record) for record in RECORDS]
    path.write_text("\n".join(lines) if kind == "jsonl" else f"[{','.join(lines)}]")
    first = 1 if kind == "jsonl" else 0
    source, positions = Source([path]), [(0, first), (0, first + 1), (0, first + 2)]
    for name in ("out.jsonl", "out.json", "out.csv", "out.parquet", "out"):
        copied(source, tmp_path / name, positions)
    read = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert read == json.loads((tmp_path / "out.json").read_text()) == RECORDS
    assert (tmp_path / "out").read_bytes() == (tmp_path / f"out.{kind}").read_bytes()
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert list(rows[0]) == ["id", "text", "n", "tags", "on", "deep"]
    assert rows[1] == {"id": "2", "text": "b", "n": "2.5", "tags": "x", "on": "", "deep": '{"a":{}}'}
    assert rows[2]["text"] == "'=c"
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    nothing = {"on": None, "deep": None, "tags": None}
    assert table == [
        {**nothing, **RECORDS[0], "tags": '["x"]'},
        {**nothing, **RECORDS[1], "deep": '{"a":{}}'},
        {**nothing, **RECORDS[2]},
    ]


def test_inputs_of_several_kinds_have_the_columns_of_all(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n=1,a\n")
    (tmp_path / "b.csv").write_text('text,id\n"b",2\n')
    (tmp_path / "c.txt").write_text("c")
    source = Source([tmp_path / name for name in ("a.csv", "b.csv", "c.txt")], Fields())
    positions = [(0, 0), (1, 0), (2, 0)]
    copied(source, tmp_path / "out.csv", positions)
    assert (tmp_path / "out.csv").read_text() == "id,text\n=1,a\n2,b\nc.txt,c\n"
    copied(source, tmp_path / "out", positions)
    assert [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()] == [
        {"id": "=1", "text": "a"},
        {"text": "b", "id": "2"},
        {"id": "c.txt", "text": "c"},
    ]
    copied(source, tmp_path / "out.x", positions, FileFormat.TSV)
    assert (tmp_path / "out.x").read_text() == "id\ttext\n'=1\ta\n2\tb\nc.txt\tc\n"


def test_a_file_that_became_shorter_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,a\n")
    pyarrow.parquet.write_table(pyarrow.table({"id": [1], "text": ["a"]}), tmp_path / "b.parquet")
    for name in ("a.csv", "b.parquet"):
        with pytest.raises(InputError, match="became shorter between two readings"):
            copied(Source([tmp_path / name]), tmp_path / "out", [(0, 0), (0, 1)])
        assert not (tmp_path / "out").exists()
