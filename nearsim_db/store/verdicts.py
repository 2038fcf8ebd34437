"""Manual verdicts about pairs: pinned, vetoed, or undone."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from psycopg import errors as pg

from nearsim_db.errors import NearsimError, NotFoundError
from nearsim_db.records import CollectionId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.rows import fetch_value, fetch_values
from nearsim_db.store.driver.statements import Leaves, statement

Ids = NDArray[np.int64]
Decision = Literal["pin", "veto", "undo"]
_STATEMENTS: dict[Decision, str] = {"pin": "pin_pair", "veto": "veto_pair", "undo": "undo_verdict"}


def judge(
    connection: Connection, decision: Decision, collection: str, a: str, b: str, why: str, by: str | None
) -> int:
    """Store a verdict about two documents, by external_id; return its number.

    `by` defaults to the database user. Raises NotFoundError for a missing document, or a missing verdict to undo, and
    NearsimError for an invalid verdict.
    """
    parameters = {"collection": collection, "a": a, "b": b, "why": why, "by": by}
    try:
        return int(fetch_value(connection, statement(_STATEMENTS[decision]), parameters))
    except pg.NoDataFound as error:
        raise NotFoundError(str(error.diag.message_primary)) from error
    except pg.InvalidParameterValue as error:
        raise NearsimError(str(error.diag.message_primary)) from error


def has_veto(connection: Connection, collection_id: CollectionId) -> bool:
    """Whether a collection has or had a veto."""
    return bool(fetch_value(connection, statement("has_veto"), {"collection_id": collection_id}))


def read_vetoes(connection: Connection, collection_id: CollectionId) -> Ids:
    """Return the active vetoes of a collection, (v, 2) int64."""
    return _ids(connection, "read_vetoes", {"collection_id": collection_id}).reshape(-1, 2)


def find_vetoed(
    connection: Connection, leaves: Leaves, collection_id: CollectionId, doc_ids: Ids, cluster_ids: Ids
) -> Ids:
    """Return the documents, and the clusters by any member, that are or were vetoed with another document."""
    parameters = {
        "collection_id": collection_id,
        "doc_ids": packed_ids(doc_ids),
        "cluster_ids": packed_ids(cluster_ids),
    }
    return _ids(connection, "find_vetoed", parameters, leaves)


def find_pinned(connection: Connection, collection_id: CollectionId, doc_ids: Ids) -> Ids:
    """Return the documents with an active pin."""
    return _ids(connection, "find_pinned", {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)})


def purge_verdicts(connection: Connection, doc_ids: Ids) -> tuple[int, bool]:
    """Delete verdicts about documents; return their number, and whether there was a veto among them."""
    are_vetoes = fetch_values(connection, statement("purge_verdicts"), {"doc_ids": packed_ids(doc_ids)})
    return len(are_vetoes), any(are_vetoes)


def _ids(
    connection: Connection, name: str, parameters: dict[str, object], leaves: Leaves | None = None
) -> Ids:
    content = fetch_value(connection, statement(name, leaves), parameters, binary=True)
    return np.frombuffer(content, ">i8").astype(np.int64)
