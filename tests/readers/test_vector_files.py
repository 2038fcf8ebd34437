"""Vectors in separate files: joined by position or by id, and messages for mismatches."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from numpy.typing import NDArray

from nearsim_db.errors import InputError
from nearsim_db.readers import Source, open_vectors
from nearsim_db.records import ReadDocument, Reject

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
