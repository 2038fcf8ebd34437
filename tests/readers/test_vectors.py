"""Vectors in documents: which values of JSON lines, CSV and programs are accepted, and why others are rejected."""

import json
import re
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


@pytest.mark.parametrize(
    "record", [{"id": "1", "text": "t"}, {"id": "1", "text": "t", "vector": None}], ids=["no key", "null"]
)
def test_a_vector_may_be_missing(tmp_path: Path, record: dict[str, object]) -> None:
    (read,) = read_bytes(tmp_path, json.dumps(record).encode())
    assert vector_of(read) is None


def test_a_document_may_be_a_vector_alone(tmp_path: Path) -> None:
    assert vector_of(*read_bytes(tmp_path, b'{"id": "1", "vector": [1]}')) == [1.0]
    assert vector_of(*read_bytes(tmp_path, b'id,vector\n1,"[1, 2]"\n', "in.csv")) == [1.0, 2.0]


@pytest.mark.parametrize("cell", [b"", b"null", b" null "])
def test_a_row_of_a_table_of_vectors_without_one_is_rejected(tmp_path: Path, cell: bytes) -> None:
    (read,) = read_bytes(tmp_path, b"id,vector\n1," + cell + b"\n", "in.csv")
    assert isinstance(read, Reject)
    assert read.reason.startswith("no 'title' and no 'text' or 'body'")


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (b'"[1, 2]"', "'vector' is a string, '[1, 2]'; it must be an array of numbers"),
        (b"7", "'vector' is a number, 7; it must be an array of numbers"),
        (b"true", "'vector' is true or false, True; it must be an array of numbers"),
        (b'{"0": 1}', "'vector' is an object, {'0': 1}; it must be an array of numbers"),
        (b"[]", "'vector' is empty; leave it out, or give at least one number"),
        (b"[1, null]", "'vector' has null, None, at position 2; it must have numbers only"),
        (b"[true, 1]", "'vector' has true or false, True, at position 1; it must have numbers only"),
        (b'[1, "2"]', "'vector' has a string, '2', at position 2; it must have numbers only"),
        (b"[[1], [2]]", "'vector' has an array, [1], at position 1; it must have numbers only"),
        (b"[0, NaN]", "'vector' has nan at position 2, which is not a finite number"),
        (b"[-Infinity]", "'vector' has -inf at position 1, which is not a finite number"),
        (b"[0, 0, 3.5e38]", "'vector' has 3.5e+38 at position 3, beyond the range of 32-bit floats"),
        (
            b"[1" + b"0" * 400 + b", 1]",
            "'vector' has an integer beyond the range of 32-bit floats",
        ),
    ],
)
def test_invalid_vectors_are_refused(tmp_path: Path, written: bytes, reason: str) -> None:
    (read,) = read_bytes(tmp_path, b'{"id": "a", "text": "t", "vector": ' + written + b"}")
    assert read == Reject(str(tmp_path / "in.jsonl"), 1, reason, "a")


def test_csv_cell_contains_an_array(tmp_path: Path) -> None:
    rows = b'id,text,vector\n1,t,"[1.5, -2]"\n2,t,\n3,t,north\n4,t,"[1,"\n5,t,"{""a"": 1}"\n'
    first, second, *rest = read_bytes(tmp_path, rows, "in.csv")
    assert vector_of(first) == [1.5, -2.0]
    assert vector_of(second) is None
    assert [(one.line, one.reason) for one in rest if isinstance(one, Reject)] == [
        (4, "'vector' is a string, 'north'; it must be an array of numbers"),
        (5, "'vector' is a string, '[1,'; it must be an array of numbers"),
        (6, "'vector' is an object, {'a': 1}; it must be an array of numbers"),
    ]


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


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (np.zeros((2, 3)), r"the vector has shape \(2, 3\) and type float64; .*"),
        (np.array(["a"]), r"the vector has shape \(1,\) and type <U1; .*"),
        (np.array([1e300]), r"the vector has 1e\+300 at position 1, beyond the range of 32-bit floats"),
        ("12", r"the vector is a string, '12'; it must be an array of numbers"),
        ([], r"the vector is empty; .*"),
    ],
    ids=["matrix", "strings", "too large", "string", "empty"],
)
def test_invalid_python_vectors_are_refused(given: Any, reason: str) -> None:
    (read,) = from_documents([Document("a", vector=given)])
    assert isinstance(read, Reject)
    assert re.fullmatch(reason, read.reason)


def test_different_vector_lengths_give_a_warning() -> None:
    lengths = [3] * 4 + [2] * 2 + [5, 6, 7, 8]
    given = [Document(f"d{at}", vector=[1.0] * length) for at, length in enumerate(lengths)]
    counted = VectorLengthCheck(from_documents([*given, Document("none", body="a text")]))
    assert len(list(counted)) == len(given) + 1
    (warning,) = counted.warnings()
    assert (
        "3 (4 documents), 2 (2 documents), 5 (1 document), 6 (1 document), 7 (1 document) and 1 more"
        in warning
    )


def test_one_vector_length_gives_no_warning() -> None:
    counted = VectorLengthCheck(from_documents([Document("a", vector=[1, 2]), Document("b", vector=[3, 4])]))
    assert len(list(counted)) == 2
    assert counted.warnings() == []
