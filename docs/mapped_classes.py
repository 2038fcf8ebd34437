"""Render `nearsim_db/store/models.py`: the tables and views of the schema as mapped classes, from the catalogue."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, Inspector, inspect, types
from sqlalchemy.dialects import postgresql

SCHEMA = "nearsim"

# Tables and views without a primary key in the catalogue, and the columns that identify their rows.
KEYS: Mapping[str, tuple[str, ...]] = {
    "signature": ("generation_id", "doc_id"),
    "band": ("generation_id", "bucket_hash", "doc_id"),
    "similar_pair": ("generation_id", "left_id", "right_id"),
    "cluster_member": ("generation_id", "doc_id"),
    "backlog": ("collection_id", "generation_id", "stage"),
    "buckets": ("generation_id", "bucket_hash"),
    "clusters": ("generation_id", "cluster_id"),
    "combined_pairs": ("collection_id", "left_id", "right_id"),
    "default_clusters": ("generation_id", "cluster_id"),
    "default_duplicates": ("generation_id", "doc_id"),
    "default_pairs": ("generation_id", "left_id", "right_id"),
    "documents": ("generation_id", "doc_id"),
    "duplicates": ("generation_id", "doc_id"),
    "events": ("event_id",),
    "first_publications": ("generation_id", "doc_id"),
    "functions": ("name", "arguments"),
    "generations": ("generation_id",),
    "live_generations": ("generation_id",),
    "pairs": ("generation_id", "left_id", "right_id"),
    "profiles": ("profile_id",),
    "review_pairs": ("generation_id", "left_id", "right_id"),
    "stored_pairs": ("generation_id", "left_id", "right_id"),
    "verdicts": ("verdict_id",),
}
# Tables that only nearsim reads and writes.
INTERNAL = {"alembic_version", "change", "work"}
OTHER_NAMES = ("Base", "View", "include_name", "include_object", "metadata")
RELATIONSHIPS: Mapping[str, tuple[str, ...]] = {
    "document": ('collection: Mapped["Collection"] = relationship()',),
    "profile": (
        'collection: Mapped["Collection"] = relationship()',
        'generations: Mapped[list["Generation"]] = relationship(back_populates="profile",'
        ' order_by="Generation.generation_id", passive_deletes=True)',
    ),
    "generation": ('profile: Mapped["Profile"] = relationship(back_populates="generations")',),
    "verdict": ('collection: Mapped["Collection"] = relationship()',),
    "probe": (
        'collection: Mapped["Collection"] = relationship()',
        'matches: Mapped[list["ProbeMatch"]] = relationship('
        'order_by="(ProbeMatch.similarity.desc(), ProbeMatch.doc_id)", viewonly=True)',
    ),
}
# The Python type of the values, and the type of the column if SQLAlchemy cannot derive it from the Python type.
TYPES: Mapping[type[types.TypeEngine[Any]], tuple[str, str | None]] = {
    postgresql.JSONB: ("dict[str, Any]", None),
    types.UUID: ("UUID", None),
    types.LargeBinary: ("bytes", None),
    types.Boolean: ("bool", None),
    types.BigInteger: ("int", None),
    types.SmallInteger: ("int", "SmallInteger"),
    types.Integer: ("int", "Integer"),
    types.REAL: ("float", "REAL"),
    types.Float: ("float", None),
    postgresql.INTERVAL: ("timedelta", None),
    types.DateTime: ("datetime", None),
    types.Text: ("str", None),
}
# The item types of arrays, for Python types that have no column type above.
_ITEMS = {"int": "BigInteger", "str": "Text", "float": "Double"}
# Columns with which most views begin. They are declared once, in a base class.
_OF_GENERATION = ("collection", "profile", "collection_id", "generation_id")
HEAD = '''"""For applications that use SQLAlchemy: tables and views as mapped classes, and filters for Alembic.

Generated from the catalogue by `make generated`. Any application may write `Document` and `Probe`, and with rights
`Collection`; the rest is read.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY, REAL, BigInteger, Computed, Double, FetchedValue, ForeignKey, Identity, Integer, MetaData, SmallInteger,
    Text, text,
)
from sqlalchemy.orm import Mapped, mapped_column, relationship

from nearsim_db.store.schema.mapped_base import Base, View, include_name, include_object

metadata: MetaData = Base.metadata
'''


def render(connection: Connection) -> str:
    """Return the module."""
    inspector = inspect(connection)
    tables = sorted(set(inspector.get_table_names(SCHEMA)) - INTERNAL)
    views = sorted(
        name
        for name in inspector.get_view_names(SCHEMA)
        if not _comment(inspector, name).startswith("Internal")
    )
    classes = ["\n".join(_class(inspector, name, "Base")) for name in tables]
    classes += _views({name: list(_class(inspector, name, "View")) for name in views})
    exported = sorted([*OTHER_NAMES, *map(_class_name, (*tables, *views))])
    return _formatted("\n\n".join([HEAD, *classes, f"__all__ = {exported!r}"]) + "\n")


def _comment(inspector: Inspector, name: str) -> str:
    return inspector.get_table_comment(name, SCHEMA)["text"] or ""


def _class_name(name: str) -> str:
    return "".join(part.title() for part in name.split("_"))


def _class(inspector: Inspector, name: str, base: str) -> Iterator[str]:
    yield f"class {_class_name(name)}({base}):"
    yield f'    """{_comment(inspector, name)}."""\n'
    yield f'    __tablename__ = "{name}"'
    keys = KEYS.get(name) or inspector.get_pk_constraint(name, SCHEMA)["constrained_columns"]
    references = {key["constrained_columns"][0]: key for key in inspector.get_foreign_keys(name, SCHEMA)}
    for column in inspector.get_columns(name, SCHEMA):
        yield "    " + _column(
            dict(column), column["name"] in keys, references.get(column["name"]), base == "View"
        )
    yield from (f"    {line}" for line in RELATIONSHIPS.get(name, ()))


def _views(classes: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the classes of the views, after the base classes that have their common columns."""
    shared = [line for line in classes["pairs"] if line.strip().split(":")[0] in _OF_GENERATION]
    yield "\n".join(["class OfGeneration:", '    """Columns of a view by live generation."""\n', *shared])
    pair_columns = classes["pairs"][3:]
    of_pairs = [line for line in pair_columns if line not in shared]
    yield "\n".join(
        ["class PairColumns(OfGeneration):", '    """Columns of the views of pairs."""\n', *of_pairs]
    )
    for heading, comment, table, *columns in classes.values():
        base = None
        if columns == pair_columns:
            base, columns = "PairColumns", []
        elif set(shared) <= set(columns):
            base, columns = "OfGeneration", [line for line in columns if line not in shared]
        if base:
            heading = heading.replace("(View)", f"({base}, View)")
        yield "\n".join([heading, comment, table, *columns])


def _column(column: dict[str, Any], is_key: bool, reference: Any, is_view: bool) -> str:
    python, sql_type = _type(column["type"])
    comment = column["comment"]
    nullable = "NULL" in comment if is_view else column["nullable"]
    parts = [*([sql_type] if sql_type else []), *_origin(column)]
    if reference:
        target = f"{SCHEMA}.{reference['referred_table']}.{reference['referred_columns'][0]}"
        ondelete = reference["options"].get("ondelete")
        parts.append(f"ForeignKey({target!r}, name={reference['name']!r}, ondelete={ondelete!r})")
    if is_key:
        parts.append("primary_key=True")
    if "set by a trigger" in comment:
        parts.append("server_onupdate=FetchedValue()")
    parts.append(f"comment={comment!r}")
    optional = " | None" if nullable else ""
    return f"{column['name']}: Mapped[{python}{optional}] = mapped_column({', '.join(parts)})"


def _origin(column: dict[str, Any]) -> Iterator[str]:
    """Yield how the server fills a column that an INSERT leaves out."""
    if column.get("identity"):
        yield f"Identity(always={column['identity']['always']})"
    elif column.get("computed"):
        yield f"Computed({column['computed']['sqltext']!r}, persisted={column['computed']['persisted']})"
    elif column["default"]:
        yield f"server_default=text({column['default']!r})"


def _type(column_type: types.TypeEngine[Any]) -> tuple[str, str | None]:
    if isinstance(column_type, types.ARRAY):
        python, sql_type = _type(column_type.item_type)
        return f"list[{python}]", f"ARRAY({sql_type or _ITEMS[python]})"
    if isinstance(column_type, types.Text) and column_type.collation:
        return "str", f"Text(collation={column_type.collation!r})"
    return next(names for kind, names in TYPES.items() if isinstance(column_type, kind))


def _formatted(code: str) -> str:
    command = [sys.executable, "-m", "ruff"]
    for arguments in (["check", "--fix", "-q", "--select", "I,F401,UP", "-"], ["format", "-q", "-"]):
        at = ["--stdin-filename", "nearsim_db/store/models.py"]
        run = subprocess.run(
            [*command, *arguments, *at], input=code, text=True, capture_output=True, check=True
        )
        code = run.stdout
    return code
