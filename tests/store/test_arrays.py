"""Packed arrays against psycopg's own lists."""

import uuid
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format
from psycopg.types.numeric import Float4, Float8, Int2, Int4, Int8

from nearsim_db.store.driver.arrays import packed, packed_ids

_EXTREMES: list[tuple[Any, NDArray[np.generic]]] = [
    (Int2, np.array([0, 1, -1, -(2**15), 2**15 - 1], np.int16)),
    (Int4, np.array([0, 1, -1, -(2**31), 2**31 - 1], np.int32)),
    (Int8, np.array([0, 1, -1, -(2**63), 2**63 - 1], np.int64)),
    (Float4, np.array([0.0, -0.0, 1.5, -np.inf, np.inf, np.nan], np.float32)),
    (Float8, np.array([0.0, -0.0, 0.1, -np.inf, np.inf, np.nan], np.float64)),
]


def dumped(value: object) -> tuple[int, bytes]:
    """The type and the bytes under which psycopg sends a parameter in binary."""
    dumper = Transformer().get_dumper(value, PyFormat.BINARY)
    content = dumper.dump(value)
    assert content is not None
    return dumper.oid, bytes(content)


@pytest.mark.parametrize(("wrapper", "values"), _EXTREMES, ids=lambda one: str(getattr(one, "dtype", "")))
def test_numbers_are_packed_as_psycopg_packs_lists(wrapper: Any, values: NDArray[np.generic]) -> None:
    assert dumped(packed(values)) == dumped([wrapper(value) for value in values.tolist()])


def test_uuids_are_packed_as_psycopg_packs_lists() -> None:
    ids = [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")]
    column = np.frombuffer(b"".join(one.bytes for one in ids), "V16")
    assert dumped(packed(column)) == dumped(ids)


@pytest.mark.parametrize(
    ("dtype", "array_oid"),
    [("i2", 1005), ("i4", 1007), ("i8", 1016), ("f4", 1021), ("f8", 1022), ("V16", 2951)],
)
def test_empty_arrays_have_no_dimension_but_a_type(dtype: str, array_oid: int) -> None:
    oid, content = dumped(packed(np.zeros(0, dtype)))
    assert oid == array_oid
    assert Transformer().get_loader(oid, Format.BINARY).load(content) == []


@pytest.mark.parametrize("length", [1, 2, 1000])
def test_arrays_of_any_length(length: int) -> None:
    values = np.arange(length) - length // 2
    assert dumped(packed(values)) == dumped([Int8(value) for value in values.tolist()])


def test_strided_arrays_are_packed_by_value() -> None:
    values = np.arange(10, dtype=np.int64)
    assert packed(values[::-2]) == packed(values[::-2].copy())


def test_ids_may_be_lists() -> None:
    assert packed_ids([3, 1, 2]) == packed(np.array([3, 1, 2], np.int64))
    assert packed_ids([]) == packed(np.zeros(0, np.int64))


def test_element_types_of_one_statement_are_independent() -> None:
    transformer = Transformer()
    oids = [
        transformer.get_dumper(packed(np.ones(1, dtype)), PyFormat.AUTO).oid
        for dtype in (np.int16, np.int64, np.int16, np.float32)
    ]
    assert oids == [1005, 1016, 1005, 1021]


@pytest.mark.parametrize("dtype", ["u8", "u4", "i1", "f2", "V8", "U4", ">i8"])
def test_unsupported_element_types_are_refused(dtype: str) -> None:
    with pytest.raises(KeyError):
        packed(np.zeros(1, dtype))
