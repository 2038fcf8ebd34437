"""Vectors in documents: which values of JSON lines, CSV and programs are accepted, and why others are rejected."""

import json
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearsim_db import Document
from nearsim_db.readers import Fields, VectorLengthCheck, from_documents
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
