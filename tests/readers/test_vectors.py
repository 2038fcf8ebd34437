"""Vectors in documents and in separate files: which are accepted, how they are joined, and why others are rejected."""

import json
import os
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

from nearsim_db import Document
from nearsim_db.errors import InputError
from nearsim_db.readers import Fields, Source, VectorLengthCheck, from_documents, open_vectors
from nearsim_db.records import ReadDocument, Reject
from tests.builders.read_files import read_bytes


def vector_of(read: ReadDocument | Reject) -> list[float] | None:
    assert isinstance(read, ReadDocument), read
    return None if read.document.vector is None else [float(one) for one in read.document.vector]


def test_json_numbers_become_32_bit_floats(tmp_path: Path) -> None:
    numbers = [1, 0.1, -2.5e-3, 0, 1e-60, 2**70, 3.4e38]
    line = json.dumps({"id": "1", "text": "a text", "vector": numbers}).encode()
    (read,) = read_bytes(tmp_path, line)
    assert vector_of(read) == np.array(numbers, np.float64).astype(np.float32).tolist()


def test_a_vector_may_be_missing_or_alone(tmp_path: Path) -> None:
    lines = b'{"id": "1", "text": "t"}\n{"id": "1", "text": "t", "vector": null}\n{"id": "1", "vector": [1]}'
    assert list(map(vector_of, read_bytes(tmp_path, lines))) == [None, None, [1.0]]


def test_a_row_of_a_table_of_vectors_needs_one(tmp_path: Path) -> None:
    empty, null, spaced, whole = read_bytes(
        tmp_path, b'id,vector\n1,\n2,null\n3, null \n4,"[1, 2]"\n', "in.csv"
    )
    assert all(isinstance(one, Reject) for one in (empty, null, spaced))
    assert vector_of(whole) == [1.0, 2.0]


INVALID = [
    b'"[1, 2]"', b"7", b"true", b'{"0": 1}', b"[]", b"[1, null]", b"[true, 1]", b'[1, "2"]', b"[[1], [2]]", b"[0, NaN]",
    b"[-Infinity]", b"[0, 0, 3.5e38]", b"[1" + b"0" * 400 + b", 1]",
]  # fmt: skip


def test_invalid_vectors_are_refused_with_the_place_of_a_number(tmp_path: Path) -> None:
    lines = [b'{"id": "a", "text": "t", "vector": %s}' % one for one in INVALID]
    rejects = [one for one in read_bytes(tmp_path, b"\n".join(lines)) if isinstance(one, Reject)]
    assert [(one.line, one.external_id) for one in rejects] == [(at, "a") for at in range(1, len(lines) + 1)]
    assert "position 3" in rejects[11].reason


def test_csv_cell_contains_an_array(tmp_path: Path) -> None:
    rows = b'id,text,vector\n1,t,"[1.5, -2]"\n2,t,\n3,t,north\n4,t,"[1,"\n5,t,"{""a"": 1}"\n'
    first, second, *rest = read_bytes(tmp_path, rows, "in.csv")
    assert vector_of(first) == [1.5, -2.0]
    assert vector_of(second) is None
    assert [one.line for one in rest if isinstance(one, Reject)] == [4, 5, 6]


def test_the_field_can_be_renamed(tmp_path: Path) -> None:
    line = b'{"id": "1", "text": "t", "embedding": [1, 2], "vector": "north"}'
    (read,) = read_bytes(tmp_path, line, fields=Fields(vector="embedding"))
    assert vector_of(read) == [1.0, 2.0]
    assert isinstance(read, ReadDocument)
    assert read.document.attributes == {"vector": "north"}


@pytest.mark.parametrize(
    "given",
    [
        [0.5, 2],
        (0.5, 2.0),
        [np.float32(0.5), np.float64(2)],
        array("d", [0.5, 2]),
        np.array([0.5, 2], np.float16),
        np.array([0.5, 2], ">f8"),
        np.array([[0.5, 2], [3, 4]], np.float64)[0],
    ],
    ids=["list", "tuple", "scalars", "array", "float16", "big-endian", "row"],
)
def test_vectors_of_many_python_types_are_accepted(given: Sequence[float]) -> None:
    (read,) = from_documents([Document("a", vector=given)])
    assert vector_of(read) == [0.5, 2.0]


@pytest.mark.parametrize("given", [np.zeros((2, 3)), np.array(["a"]), np.array([1e300]), "12", []], ids=str)
def test_invalid_python_vectors_are_refused(given: Any) -> None:
    (read,) = from_documents([Document("a", vector=given)])
    assert isinstance(read, Reject)


def test_different_vector_lengths_give_a_warning() -> None:
    lengths = [3] * 4 + [2] * 2 + [5, 6, 7, 8]
    given = [Document(f"d{at}", vector=[1.0] * length) for at, length in enumerate(lengths)]
    counted = VectorLengthCheck(from_documents([*given, Document("none", body="a text")]))
    assert len(list(counted)) == len(given) + 1
    (warning,) = counted.warnings()
    assert "3 (4 documents), 2 (2 documents), 5 (1 document)" in warning and "1 more" in warning


def test_one_vector_length_gives_no_warning() -> None:
    counted = VectorLengthCheck(from_documents([Document("a", vector=[1, 2]), Document("b", vector=[3, 4])]))
    assert len(list(counted)) == 2
    assert counted.warnings() == []


Found = list[tuple[str, list[float] | None]]


def documents(tmp_path: Path, ids: Sequence[str], name: str = "in.jsonl") -> Path:
    """A record for each id; one for an empty id is a reject."""
    path = tmp_path / name
    path.write_text("".join(json.dumps({"id": one, "text": "t"}) + "\n" for one in ids))
    return path


def matrix(tmp_path: Path, rows: NDArray[np.generic]) -> Path:
    path = tmp_path / "vectors.npy"
    np.save(path, rows)
    return path


def table(tmp_path: Path, ids: Sequence[str | int | None], vectors: Sequence[object]) -> Path:
    path = tmp_path / "vectors.parquet"
    pyarrow.parquet.write_table(
        pyarrow.table({"id": ids, "vector": pyarrow.array(vectors, pyarrow.list_(pyarrow.float64()))}), path
    )
    return path


def joined(vectors: Path, *paths: Path) -> tuple[Found, list[Reject], tuple[str, ...]]:
    with open_vectors(vectors) as beside:
        source = Source(paths)
        beside.check(source)
        read = list(beside.joined(source))
        rejects = [one for one in read if isinstance(one, Reject)]
        return [_found(one) for one in read if isinstance(one, ReadDocument)], rejects, beside.warnings


def _found(read: ReadDocument) -> tuple[str, list[float] | None]:
    vector = read.document.vector
    return read.document.external_id, None if vector is None else list(vector)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ">f4"])
def test_rows_are_counted_across_files_and_rejected_records(tmp_path: Path, kind: str) -> None:
    first = documents(tmp_path, ["a", "", "b"], "one.jsonl")
    second = documents(tmp_path, ["c"], "two.jsonl")
    rows = np.arange(8).reshape(4, 2).astype(kind)
    found, rejects, _ = joined(matrix(tmp_path, rows), first, second)
    assert found == [("a", [0.0, 1.0]), ("b", [4.0, 5.0]), ("c", [6.0, 7.0])]
    assert [reject.line for reject in rejects] == [2]


@pytest.mark.parametrize("rows", [2, 4])
def test_a_wrong_number_of_rows_is_refused_before_ingesting(tmp_path: Path, rows: int) -> None:
    given = documents(tmp_path, ["a", "", "b"])
    with open_vectors(matrix(tmp_path, np.ones((rows, 2)))) as beside:
        reason = rf"vectors.npy has {rows} rows, but 3 records were read; nothing was written"
        with pytest.raises(InputError, match=reason):
            beside.check(Source([given]))


@pytest.mark.parametrize("rows", [2, 4])
def test_a_wrong_number_of_rows_in_a_stream_is_refused_at_the_end(tmp_path: Path, rows: int) -> None:
    source = Source([documents(tmp_path, ["a", "b", "c"])])
    taken = []
    reason = f"has {rows} rows, but 3 records were read; vectors may"
    with (
        open_vectors(matrix(tmp_path, np.ones((rows, 2)))) as beside,
        pytest.raises(InputError, match=reason),
    ):
        for one in beside.joined(source):
            taken.append(one)
    assert len(taken) == min(rows, 3)


def test_invalid_rows_of_a_matrix_reject_their_documents(tmp_path: Path) -> None:
    path = matrix(tmp_path, np.array([[1, 1], [np.nan, 1], [1, 1e300]]))
    found, rejects, _ = joined(path, documents(tmp_path, ["a", "b", "c"]))
    assert found == [("a", [1.0, 1.0])]
    assert [(one.external_id, one.line) for one in rejects] == [("b", 2), ("c", 3)]


@pytest.mark.parametrize(
    "rows",
    [
        np.ones(3),
        np.ones((1, 2, 3)),
        np.ones((2, 2), np.int64),
        np.array([["a"]]),
        np.array([{"a": 1}], object),
    ],
    ids=str,
)
def test_other_arrays_and_pickles_are_refused(tmp_path: Path, rows: NDArray[np.generic]) -> None:
    with pytest.raises(InputError, match=r"vectors\.npy"):
        open_vectors(matrix(tmp_path, rows))


def test_a_table_is_joined_by_id_in_any_order(tmp_path: Path) -> None:
    path = table(tmp_path, ["c", "x", "a", "n", "y", "b"], [[3], [9], [1, 1], None, [9], [2]])
    found, rejects, reported = joined(path, documents(tmp_path, ["a", "", "b", "c", "n", "without"]))
    assert found == [("a", [1.0, 1.0]), ("b", [2.0]), ("c", [3.0]), ("n", None), ("without", None)]
    assert [reject.line for reject in rejects] == [2]
    assert reported == (
        f"1 documents have no vector in {path}: 'without'",
        f"2 ids without a document are in {path}: 'x', 'y'",
    )


def test_ids_may_be_numbers_and_invalid_vectors_reject_their_documents(tmp_path: Path) -> None:
    path = table(tmp_path, [2, 1], [[float("inf")], [1]])
    found, rejects, reported = joined(path, documents(tmp_path, ["1", "2"]))
    assert (found, [one.external_id for one in rejects], reported) == ([("1", [1.0])], ["2"], ())


@pytest.mark.parametrize(
    ("ids", "reason"),
    [(["a", "b", "a"], "duplicate id 'a' in .*, rows 1 and 3"), (["a", None, "b"], "row 2: 'id' is empty")],
)
def test_ids_of_a_table_are_checked(tmp_path: Path, ids: list[str | None], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        open_vectors(table(tmp_path, ids, [[1]] * 3))


def test_other_files_are_refused(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"key": ["a"]}), tmp_path / "vectors.parquet")
    os.mkfifo(tmp_path / "pipe.npy")
    for name in ("vectors.parquet", "vectors.csv", "gone.npy", "pipe.npy"):
        with pytest.raises(InputError, match=name.partition(".")[0]):
            open_vectors(tmp_path / name)
