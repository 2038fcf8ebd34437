"""How one document stands in a generation."""

from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection

from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import Leaves, statement


@dataclass(frozen=True, slots=True)
class Standing:
    """The revision of a document and that of its signature, None for one that is not in the index.

    `waits` says that it is still to be signed, `set_aside` that this was given up.
    """

    revision: int
    signed: int | None
    feature_count: int | None
    waits: bool
    set_aside: bool


def read_standing(connection: Connection, leaves: Leaves, doc_id: int) -> Standing | None:
    """How a document stands; None for one that is gone."""
    row = driver(connection).execute(statement("read_document_state", leaves), {"doc_id": doc_id}).fetchone()
    return None if row is None else Standing(*cast(tuple[int, int | None, int | None, bool, bool], row))
