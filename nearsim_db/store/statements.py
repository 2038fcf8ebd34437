"""The SQL of the store: one statement a file in sql/, named verb_noun, with a generation's own tables filled in."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

from psycopg import sql

from nearsim_db.records import GenerationId

SCHEMA = "nearsim"


@dataclass(frozen=True, slots=True)
class Leaves:
    """The names of one generation's own tables, for statements that must not go through the parents."""

    generation_id: GenerationId

    def table(self, parent: str) -> sql.Identifier:
        """The leaf of a parent, as nearsim.signature_7."""
        return sql.Identifier(SCHEMA, self.name(parent))

    def name(self, parent: str) -> str:
        """The leaf's bare name."""
        return f"{parent}_{self.generation_id}"


PARENTS = ("signature", "band", "similar_pair", "cluster_member")


def statement(name: str, leaves: Leaves | None = None, **parts: sql.Composable) -> sql.Composed:
    """The statement of that name; `{signature}`, `{band}` and so on become the leaves' names."""
    if leaves is not None:
        parts |= {parent: leaves.table(parent) for parent in PARENTS}
        parts["generation_id"] = sql.Literal(leaves.generation_id)
    return sql.SQL(_text(name)).format(**parts)


@cache
def _text(name: str) -> LiteralString:
    # These files ship with the package and are as trusted as its code.
    return cast(LiteralString, (files("nearsim_db.store") / "sql" / f"{name}.sql").read_text("utf-8"))  # type: ignore[redundant-cast]
