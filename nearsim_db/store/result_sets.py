"""What comparing a result set reads: prepared statements, a round trip each."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

from sqlalchemy import Connection

from nearsim_db.records import CollectionId
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import Leaves, statement

Signed = tuple[int, int, bytes | None]  # doc_id, revision, sketch


def read_signed(
    connection: Connection,
    leaves: Leaves,
    purged_at: datetime | None,
    doc_ids: Sequence[int],
    revisions: Sequence[int],
) -> list[Signed] | None:
    """How those of some documents are signed that are; no sketch for one of the revision given, or without features.

    None where the generation does not serve any more, or texts were purged from its collection after `purged_at`.
    """
    parameters = {
        "doc_ids": packed_ids(doc_ids),
        "revisions": packed_ids(revisions),
        "purged_at": purged_at,
    }
    rows = _fetch(connection, "read_result_set", leaves, parameters)
    return cast(list[Signed] | None, _known(rows))


def read_verdicts(
    connection: Connection, leaves: Leaves, purged_at: datetime | None
) -> list[tuple[int, int, bool]] | None:
    """The verdicts that stand, as (left_id, right_id, whether the pair is pinned); None as for `read_signed`."""
    rows = _fetch(connection, "read_active_verdicts", leaves, {"purged_at": purged_at})
    return cast(list[tuple[int, int, bool]] | None, _known(rows))


def read_doc_ids(
    connection: Connection, collection_id: CollectionId, external_ids: Sequence[str]
) -> dict[str, int]:
    """The doc_ids of those of some external ids that a collection has."""
    parameters = {"collection_id": collection_id, "external_ids": list(external_ids)}
    return dict(cast(list[tuple[str, int]], _fetch(connection, "read_doc_ids", None, parameters)))


def _known(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]] | None:
    """The rows beside the fact that the generation serves, None without that fact."""
    if not rows:
        return None
    return [] if rows[0][0] is None else rows


@lru_cache(maxsize=64)
def _composed(name: str, leaves: Leaves | None) -> bytes:
    return statement(name, leaves).as_bytes(None)


def _fetch(
    connection: Connection, name: str, leaves: Leaves | None, parameters: dict[str, Any]
) -> list[tuple[Any, ...]]:
    with driver(connection).cursor(binary=True) as cursor:
        return cursor.execute(_composed(name, leaves), parameters, prepare=True).fetchall()
