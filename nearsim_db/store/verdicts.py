"""What people decided about pairs: pinned together, vetoed, or undone again."""

from collections.abc import Iterator
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from psycopg import errors as pg
from sqlalchemy import Connection

from nearsim_db.errors import NearsimError, NotFoundError
from nearsim_db.records import CollectionId, Verdict
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import Leaves, statement

Ids = NDArray[np.int64]
Decision = Literal["pin", "veto", "undo"]
_STATEMENTS: dict[Decision, str] = {"pin": "pin_pair", "veto": "veto_pair", "undo": "undo_verdict"}


def judge(
    connection: Connection, decision: Decision, collection: str, a: str, b: str, why: str, by: str | None
) -> int:
    """Decide about two documents of a collection, by external_id; returns the number of the verdict.

    Without `by` the database user decides. Raises NotFoundError for a document, or for a verdict to undo, that is not
    there, and NearsimError for what cannot be decided.
    """
    parameters = {"collection": collection, "a": a, "b": b, "why": why, "by": by}
    try:
        row = driver(connection).execute(statement(_STATEMENTS[decision]), parameters).fetchone()
    except pg.NoDataFound as error:
        raise NotFoundError(str(error.diag.message_primary)) from error
    except pg.InvalidParameterValue as error:
        raise NearsimError(str(error.diag.message_primary)) from error
    return cast(tuple[int], row)[0]


def stream_verdicts(
    connection: Connection, collection_id: CollectionId, by: str | None, *, undone: bool
) -> Iterator[Verdict]:
    """The verdicts of a collection, the newest first, of one person or of all; with `undone` also those undone."""
    parameters = {"collection_id": collection_id, "by": by, "undone": undone}
    with driver(connection).cursor(name="nearsim_verdicts") as cursor:
        cursor.itersize = 5000
        for row in cursor.execute(statement("list_verdicts"), parameters):
            yield Verdict(*cast(tuple[Any, ...], row))


def find_any_veto(connection: Connection, collection_id: CollectionId) -> bool:
    """Whether a collection has, or ever had, a veto."""
    parameters = {"collection_id": collection_id}
    row = driver(connection).execute(statement("has_veto"), parameters).fetchone()
    return cast(tuple[bool], row)[0]


def read_vetoes(connection: Connection, collection_id: CollectionId) -> Ids:
    """The vetoes that stand in a collection, (v, 2) int64."""
    return _ids(connection, "read_vetoes", {"collection_id": collection_id}).reshape(-1, 2)


def find_vetoed(
    connection: Connection, leaves: Leaves, collection_id: CollectionId, doc_ids: Ids, cluster_ids: Ids
) -> Ids:
    """Of some documents and cluster_ids those that are, or have a member that is, or ever was, vetoed with another."""
    parameters = {
        "collection_id": collection_id,
        "doc_ids": packed_ids(doc_ids),
        "cluster_ids": packed_ids(cluster_ids),
    }
    return _ids(connection, "find_vetoed", parameters, leaves)


def find_pinned(connection: Connection, collection_id: CollectionId, doc_ids: Ids) -> Ids:
    """Those of some documents on which a pin stands."""
    return _ids(connection, "find_pinned", {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)})


def purge_verdicts(connection: Connection, doc_ids: Ids) -> tuple[int, bool]:
    """Delete what was decided about documents; returns how many verdicts that were, and whether there was a veto."""
    parameters = {"doc_ids": packed_ids(doc_ids)}
    rows = driver(connection).execute(statement("purge_verdicts"), parameters).fetchall()
    return len(rows), any(is_veto for (is_veto,) in rows)


def _ids(
    connection: Connection, name: str, parameters: dict[str, object], leaves: Leaves | None = None
) -> Ids:
    row = driver(connection).execute(statement(name, leaves), parameters, binary=True).fetchone()
    return np.frombuffer(cast(tuple[bytes], row)[0], ">i8").astype(np.int64)
