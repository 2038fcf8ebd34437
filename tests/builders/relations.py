"""Tables and views by name. Internal tables and tables of generations are in nearsim_index, all others in nearsim."""

import re

import psycopg
from psycopg import sql

from nearsim_db.records import GenerationId
from nearsim_db.store.driver.statements import Leaves

_INTERNAL = {
    *(
        "attachment",
        "attached_texts",
        "build_slice",
        "checked_insertion",
        "collection_access",
        "granted_generations",
        "lease",
        "lock_secret",
    ),
    *(
        "pair_ends",
        "pending_event",
        "queued_work",
        "schema_floor",
        "signed",
        "signed_document",
        "visible_changes",
        "visible_profiles",
        "visible_workers",
    ),
}


def is_partition(name: str) -> bool:
    """Whether a table has the rows of one generation, such as band_7, or of several, such as band_shared."""
    return re.search(r"_(\d+|shared)$", name) is not None


def identifier(name: str) -> sql.Identifier:
    """The table or view with its schema."""
    return sql.Identifier("nearsim_index" if name in _INTERNAL or is_partition(name) else "nearsim", name)


def leaves_of(url: str) -> list[Leaves]:
    """The tables of each generation, the oldest first."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT generation_id FROM nearsim.generation ORDER BY created_at"
        ).fetchall()
    return [Leaves(GenerationId(generation_id)) for (generation_id,) in rows]
