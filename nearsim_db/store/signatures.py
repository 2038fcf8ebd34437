"""Signatures of one generation: written, read, and their heads chosen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from nearsim_db.records import CollectionId
from nearsim_db.similarity.batches import SignatureRows, Signatures
from nearsim_db.store.driver.arrays import packed, packed_ids
from nearsim_db.store.driver.codec import sketch_bytes, sketches_from, to_bigint
from nearsim_db.store.driver.copying import copy_columns
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import Leaves, statement

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Signed:
    """What a document is signed with: `digest` and `head_id` are None for one without features."""

    digest: UUID | None
    revision: int
    head_id: int | None


def write_signatures(connection: Connection, leaves: Leaves, rows: SignatureRows, heads: Ids) -> None:
    """Load signature rows, those with features under their heads: int64 of n."""
    inner = driver(connection)
    table = leaves.table("signature")
    for chosen, with_features in ((rows.counts > 0, True), (rows.counts == 0, False)):
        if not chosen.any():
            continue
        columns = [
            ("doc_id", rows.doc_ids[chosen]),
            ("revision", rows.revisions[chosen]),
            ("feature_count", rows.counts[chosen]),
            ("numbers_digest", to_bigint(rows.numbers[chosen])),
        ]
        if with_features:
            columns += [
                ("feature_digest", rows.digests[chosen]),
                ("sketch", sketch_bytes(rows.sketches[chosen])),
                ("head_id", heads[chosen]),
            ]
        copy_columns(inner, table, columns)


def last_signed(connection: Connection, leaves: Leaves) -> int:
    """The largest doc_id signed so far, 0 for none."""
    row = driver(connection).execute(statement("read_last_signed", leaves)).fetchone()
    return 0 if row is None or row[0] is None else int(str(row[0]))


def count_signed(connection: Connection, leaves: Leaves) -> int:
    """How many documents are signed."""
    row = driver(connection).execute(statement("count_signed", leaves)).fetchone()
    assert row is not None
    return int(str(row[0]))


def count_heads(connection: Connection, leaves: Leaves, through: int | None = None) -> int:
    """How many heads there are, up to a doc_id if one is given."""
    row = driver(connection).execute(statement("count_heads", leaves), {"through": through}).fetchone()
    assert row is not None
    return int(str(row[0]))


def read_head_ids(connection: Connection, leaves: Leaves) -> NDArray[np.int64]:
    """The doc_ids of all heads, in order."""
    with driver(connection).cursor(binary=True) as cursor:
        row = cursor.execute(statement("read_head_ids", leaves)).fetchone()
    return np.frombuffer(cast(bytes, row[0]) if row else b"", ">i8").astype(np.int64)


def count_features(connection: Connection, leaves: Leaves) -> tuple[int, int, int, int]:
    """Documents with features, those of them with a single one, those without, and the features of all heads."""
    row = driver(connection).execute(statement("count_features", leaves)).fetchone()
    assert row is not None
    with_features, with_one, without, features = (int(str(count)) for count in row)
    return with_features, with_one, without, features


def index_signatures(connection: Connection, leaves: Leaves) -> None:
    """Build the indexes of loaded signatures and name the heads of twins."""
    inner = driver(connection)
    inner.execute(statement("index_signatures", leaves))
    inner.execute(statement("assign_heads", leaves))


def stream_head_sketches(
    connection: Connection, leaves: Leaves, dtype: np.dtype[np.generic], k: int, batch: int
) -> Iterator[tuple[Ids, NDArray[np.generic]]]:
    """The doc_ids and sketches of all heads, `batch` at a time, in no order."""
    with driver(connection).cursor(name="nearsim_sketches", binary=True) as cursor:
        cursor.execute(statement("read_head_sketches", leaves))
        while rows := cast(list[tuple[int, bytes]], cursor.fetchmany(batch)):
            blobs = [row[1] for row in rows]
            yield np.array([row[0] for row in rows], np.int64), sketches_from(blobs, dtype, k)


def sample_sketches(
    connection: Connection, leaves: Leaves, dtype: np.dtype[np.generic], k: int, size: int
) -> NDArray[np.generic]:
    """The sketches of a random sample of heads, (n, k) with n up to `size`."""
    with driver(connection).cursor(binary=True) as cursor:
        rows = cursor.execute(statement("sample_sketches", leaves), {"size": size}).fetchall()
    return sketches_from([row[1] for row in cast(list[tuple[int, bytes]], rows)], dtype, k)


def read_sketches(
    connection: Connection,
    leaves: Leaves,
    doc_ids: Sequence[int] | Ids,
    dtype: np.dtype[np.generic],
    k: int,
) -> Signatures:
    """The signatures of those of some documents that are heads."""
    with driver(connection).cursor(binary=True) as cursor:
        rows = cursor.execute(statement("read_sketches", leaves), {"doc_ids": packed_ids(doc_ids)}).fetchall()
    return _signatures(rows, dtype, k)


def read_heads(
    connection: Connection, leaves: Leaves, digests: Sequence[UUID], dtype: np.dtype[np.generic], k: int
) -> Signatures:
    """The heads of some digests."""
    if not digests:
        return _signatures([], dtype, k)
    with driver(connection).cursor(binary=True) as cursor:
        rows = cursor.execute(statement("read_heads", leaves), {"digests": list(digests)}).fetchall()
    return _signatures(rows, dtype, k)


def _signatures(rows: list[tuple[Any, ...]], dtype: np.dtype[np.generic], k: int) -> Signatures:
    doc_ids = np.array([row[0] for row in rows], np.int64)
    return Signatures(doc_ids, sketches_from([row[1] for row in rows], dtype, k), [row[2] for row in rows])


def read_signed(connection: Connection, leaves: Leaves, doc_ids: Sequence[int]) -> dict[int, Signed]:
    """How those of some documents that are signed are."""
    with driver(connection).cursor(binary=True) as cursor:
        rows = cursor.execute(
            statement("read_signatures", leaves), {"doc_ids": packed_ids(doc_ids)}
        ).fetchall()
    return {row[0]: Signed(*row[1:]) for row in cast(list[tuple[Any, ...]], rows)}


def read_first(connection: Connection, leaves: Leaves, digests: Sequence[UUID]) -> dict[UUID, int]:
    """The first document of each of some digests, where there is one."""
    rows = (
        driver(connection)
        .execute(statement("read_first_documents", leaves), {"digests": list(digests)})
        .fetchall()
    )
    return dict(cast(list[tuple[UUID, int]], rows))


def find_doubles(connection: Connection, leaves: Leaves, heads: Signatures) -> list[UUID]:
    """The digests of some heads that have another head as well."""
    parameters = {"doc_ids": packed_ids(heads.doc_ids), "digests": list(heads.digests)}
    rows = driver(connection).execute(statement("find_duplicate_heads", leaves), parameters).fetchall()
    return [digest for (digest,) in cast(list[tuple[UUID]], rows)]


def read_current(
    connection: Connection,
    leaves: Leaves,
    collection_id: CollectionId,
    doc_ids: Sequence[int],
    age_seconds: int | None,
) -> set[int]:
    """Those of some documents that are signed as they are now, and no older than the age."""
    parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids), "age": age_seconds}
    rows = driver(connection).execute(statement("find_current", leaves), parameters).fetchall()
    return {int(str(row[0])) for row in rows}


def move_revisions(
    connection: Connection, leaves: Leaves, doc_ids: Ids, revisions: Ids, numbers: NDArray[np.uint64]
) -> None:
    """Documents whose features did not change are at another revision now."""
    if not len(doc_ids):
        return
    parameters = {
        "doc_ids": packed(doc_ids),
        "revisions": packed(revisions),
        "numbers": packed(to_bigint(numbers)),
    }
    driver(connection).execute(statement("update_revisions", leaves), parameters)


def delete_signatures(connection: Connection, leaves: Leaves, doc_ids: Sequence[int]) -> None:
    """Signatures go, and with them their pairs."""
    if len(doc_ids):
        driver(connection).execute(statement("delete_signatures", leaves), {"doc_ids": packed_ids(doc_ids)})


def choose_heads(connection: Connection, leaves: Leaves, digests: Sequence[UUID]) -> None:
    """Give each digest its smallest doc_id as head."""
    if digests:
        driver(connection).execute(statement("reassign_digests", leaves), {"digests": list(digests)})
