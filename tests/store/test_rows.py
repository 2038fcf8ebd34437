"""Rows on their way into the database: packed arrays, the order of band rows, pairs that two sessions find."""

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format
from psycopg.types.numeric import Float4, Float8, Int2, Int4, Int8

from nearsim_db import Document, Index
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.screening import VerifiedPairs
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.arrays import packed, packed_ids
from nearsim_db.store.driver.statements import Leaves, run
from nearsim_db.store.generations.tables import GenerationTables
from nearsim_db.store.signatures.bands import BandRows

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


Keys = NDArray[np.uint64]
DOCUMENTS, BANDS, BUCKETS = 500, 6, 40
rng = np.random.default_rng(1)


def draw(lowest: int) -> Keys:
    """Band numbers from the lowest on in the top byte, and few different buckets."""
    numbers = np.arange(lowest, lowest + BANDS, dtype=np.uint64) << np.uint64(56)
    return rng.integers(0, BUCKETS, (DOCUMENTS, BANDS)).astype(np.uint64) | numbers


@pytest.mark.parametrize(
    ("keys", "arrange"),
    [
        (draw(0), np.sort),
        (draw(0), rng.permutation),
        (draw(125), np.sort),
        (draw(0)[:, ::-1], np.sort),
        (draw(0) & np.uint64(2**56 - 1), np.sort),
    ],
    ids=["by band", "documents unsorted", "numbers beyond 127", "bands reversed", "one band number"],
)
def test_rows_are_sorted_by_signed_hash_and_document(
    keys: Keys, arrange: Callable[[NDArray[np.int64]], NDArray[np.int64]]
) -> None:
    doc_ids = arrange(rng.choice(10 * DOCUMENTS, DOCUMENTS, replace=False))
    rows = BandRows.of(doc_ids, keys)
    signed = [
        (key - 2**64 if key >= 2**63 else key, doc_id)
        for doc_id, own in zip(doc_ids.tolist(), keys.tolist(), strict=True)
        for key in own
    ]
    assert list(zip(rows.hashes.tolist(), rows.doc_ids.tolist(), strict=True)) == sorted(signed)


_BODIES = ["the first of three texts", "another one about trees", "a third that is like neither"]
_BLOCKED = (
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %(pid)s AND pg_blocking_pids(pid) <> '{}')"
)


@pytest.fixture
def leaves(database_url: str) -> Iterator[Leaves]:
    """The live generation of three documents, without pairs."""
    with Index.connect(database_url) as index:
        index.add([Document(str(place), body=body) for place, body in enumerate(_BODIES)])
        yield index.serving().context.generation.leaves


def pairs_of(connection: Connection, leaves: Leaves, *ends: tuple[int, int]) -> VerifiedPairs:
    """Pairs as verification returns them."""
    signed = GenerationTables(connection, leaves).signatures.read_signed([1, 2, 3])
    connection.commit()
    left, right = np.array(ends, np.int64).T
    ones, alike = np.ones(len(ends), np.int64), Scores(np.ones(len(ends)))
    digests = {doc_id: one.digest for doc_id, one in signed.items() if one.digest}
    return VerifiedPairs(
        left, right, ones, alike, len(ends), alike, np.zeros(len(ends), bool),
        [digests[one] for one in left.tolist()], [digests[one] for one in right.tolist()],
    )  # fmt: skip


def test_stored_pairs_are_left_out(connection: Connection, leaves: Leaves) -> None:
    first = GenerationTables(connection, leaves).pairs.store(pairs_of(connection, leaves, (2, 3), (1, 2)))
    assert first.tolist() == [[1, 2], [2, 3]]
    again = GenerationTables(connection, leaves).pairs.store(pairs_of(connection, leaves, (1, 2), (1, 3)))
    assert again.tolist() == [[1, 3]]


def test_pair_that_another_session_is_storing_is_left_out(
    connection: Connection, engine: Engine, leaves: Leaves
) -> None:
    found = pairs_of(connection, leaves, (1, 2), (1, 3))
    GenerationTables(connection, leaves).pairs.store(pairs_of(connection, leaves, (1, 2)))
    with (
        ThreadPoolExecutor(1) as pool,
        engine.connect() as other,
        engine.connect(autocommit=True) as watching,
    ):
        pid = run(other, "SELECT pg_backend_pid()").value()
        storing = pool.submit(GenerationTables(other, leaves).pairs.store, found)
        while not run(watching, _BLOCKED, pid=pid).value():
            pass
        connection.commit()
        assert storing.result().tolist() == [[1, 3]]
