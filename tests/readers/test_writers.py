"""Writers: what is written is read back by other libraries, and the suffix of a file chooses its format."""

import csv
import gzip
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.errors import InputError, NearsimError
from nearsim_db.readers.writers.delimited import DelimitedLines
from nearsim_db.readers.writers.file_format import Encoding, FileFormat, chosen_encoding
from nearsim_db.readers.writers.opened import compressed, open_writer
from nearsim_db.readers.writers.parquet import parquet_schema
from tests.builders.selection import examples

Record = Mapping[str, object]
JSONL, JSON, CSV, TSV, PARQUET = (FileFormat(name) for name in ("jsonl", "json", "csv", "tsv", "parquet"))
DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
TEXTS = st.fixed_dictionaries({"id": TEXT, 'a,"b': TEXT})
VALUES = st.fixed_dictionaries(
    {
        "id": TEXT,
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "x": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "yes": st.none() | st.booleans(),
        "any": st.none() | TEXT | st.lists(st.integers(), max_size=2),
    }
)  # fmt: skip
VALUES_OF = ("id", "n", "x", "yes", "any")
TYPES = [pyarrow.string(), pyarrow.int64(), pyarrow.float64(), pyarrow.bool_(), pyarrow.string()]
KINDS = {"n": ["integer", "null"], "x": ["integer", "number"], "yes": ["boolean"], "any": ["array", "string"]}


def written(records: Sequence[Record], encoding: Encoding, columns: Sequence[str] = ()) -> bytes:
    schema = parquet_schema(columns, KINDS) if encoding.format is PARQUET else None
    with TemporaryDirectory() as folder:
        path = Path(folder, "out")
        with open_writer(path, encoding, columns, schema) as writer:
            for record in records:
                writer.write(record)
        return DECOMPRESS[encoding.compression](path.read_bytes())


@examples(50)
@given(st.lists(VALUES, max_size=4), st.sampled_from(list(DECOMPRESS)))
def test_json_is_read_back(records: list[Record], compression: str) -> None:
    lines = written(records, Encoding(JSONL, compression)).decode()
    assert [json.loads(line) for line in lines.split("\n")[:-1]] == records
    assert json.loads(written(records, Encoding(JSON, compression))) == records


@pytest.mark.parametrize("library", ["isal", "zlib"])
def test_gzip_of_either_library_is_read_back_and_is_the_same_each_time(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if library == "isal":
        pytest.importorskip("isal")
    else:
        monkeypatch.setitem(sys.modules, "isal", None)
        monkeypatch.setitem(sys.modules, "isal.igzip", None)
    lines = [b'{"n":%d}\n' % number for number in range(20_000)]
    files = []
    for _ in range(2):
        files.append(packed := io.BytesIO())
        with compressed(packed, ".gz") as stream:
            stream.writelines(lines)
    assert gzip.decompress(files[0].getvalue()) == b"".join(lines)
    assert files[0].getvalue() == files[1].getvalue()


@examples(50)
@given(st.lists(TEXTS, max_size=4), st.sampled_from([",", "\t", ";"]), st.sampled_from(list(DECOMPRESS)))
def test_exact_csv_is_read_back(records: list[Record], delimiter: str, compression: str) -> None:
    names = ["id", 'a,"b']
    content = written(records, Encoding(CSV, compression, delimiter, exact=True), names).decode()
    assert list(csv.DictReader(io.StringIO(content, newline=""), delimiter=delimiter)) == records


@examples(50)
@given(st.lists(VALUES, max_size=4))
def test_parquet_is_read_back(records: list[Record]) -> None:
    table = pyarrow.parquet.read_table(io.BytesIO(written(records, Encoding(PARQUET), VALUES_OF)))
    assert table.schema.types == TYPES
    rows = [
        {**row, "any": row["any"] if isinstance(given["any"], str | None) else json.loads(row["any"])}
        for row, given in zip(table.to_pylist(), records, strict=True)
    ]
    assert rows == records


def test_parquet_has_row_groups_of_bounded_size(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    with open_writer(path, Encoding(PARQUET), ["id"], parquet_schema(["id"], {})) as writer:
        for letter in "abcdefghi":
            writer.write({"id": letter * 4_000_000})
    metadata = pyarrow.parquet.ParquetFile(path).metadata
    assert [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)] == [8, 1]


def test_csv_marks_formulas_and_formats_values() -> None:
    moment = datetime(2024, 5, 31, tzinfo=UTC)
    record = {"id": "=1+1", "n": -5, "yes": True, "at": moment, "any": [1, None], "none": None}
    assert written([record], Encoding(CSV), list(record)).decode() == (
        'id,n,yes,at,any,none\n\'=1+1,-5,true,2024-05-31T00:00:00+00:00,"[1,null]",\n'
    )


def test_numbers_of_any_size_are_written_in_full() -> None:
    record = {"n": 10**30, "x": Decimal("0.1000000000000000000001")}
    assert written([record], Encoding(JSONL)) == b'{"n":%d,"x":0.1000000000000000000001}\n' % 10**30


def test_a_value_that_parquet_cannot_hold_is_an_error() -> None:
    with pytest.raises(InputError, match=r"column 'published_at' cannot be written as timestamp.*"):
        written([{"published_at": "infinity"}], Encoding(PARQUET), ["published_at"])


def test_a_failed_file_is_absent(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl.gz"
    with pytest.raises(NearsimError), open_writer(path, Encoding(JSONL, ".gz"), []) as writer:
        writer.write({"id": 1})
        raise NearsimError("stop")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "format", "expected"),
    [
        ("a.jsonl", None, Encoding(JSONL)),
        ("A.NDJSON.GZ", None, Encoding(JSONL, ".gz")),
        ("a.csv.zst", CSV, Encoding(CSV, ".zst")),
        ("a.csv", FileFormat.CSV_EXACT, Encoding(CSV, exact=True)),
        ("a.tsv", None, Encoding(TSV, delimiter="\t")),
        ("a.parquet", None, Encoding(PARQUET)),
        ("a.x", CSV, Encoding(CSV)),
        ("a", None, Encoding(TSV, delimiter="\t")),
        ("a.gz", None, Encoding(TSV, ".gz", "\t")),
        ("-", JSON, Encoding(JSON)),
    ],
)
def test_the_suffix_decides_else_the_option_else_the_default(
    name: str, format: FileFormat | None, expected: Encoding
) -> None:
    assert chosen_encoding(Path(name), format, TSV) == expected


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.xlsx", None),
        ("a.csv", JSONL),
        ("a.jsonl", FileFormat.CSV_EXACT),
        ("a.parquet.gz", None),
        ("a.gz", PARQUET),
    ],
)
def test_other_suffixes_are_refused(name: str, format: FileFormat | None) -> None:
    with pytest.raises(InputError):
        chosen_encoding(Path(name), format, JSONL)


def test_cells_with_any_separator_are_quoted_for_spreadsheets() -> None:
    lines = DelimitedLines()
    for cell in ("x;=cmd", "x\t=cmd", "x|=cmd", "x,=cmd"):
        assert lines.line(["1", cell]) == f'1,"{cell}"\n'
    assert DelimitedLines("\t").line(["x;=cmd"]) == '"x;=cmd"\n'
    assert DelimitedLines(marked=False).line(["x;y"]) == "x;y\n"
    assert lines.line(["plain text", 1.5, None]) == "plain text,1.5,\n"
