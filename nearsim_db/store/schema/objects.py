"""Comparing the schema of a database with the files that define it, and restoring views, functions and triggers."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

import psycopg

from nearsim_db.store.citus import placement
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run
from nearsim_db.store.schema import baseline

# The schemas of a second installation, which serves for the comparison and is rolled back.
_EXPECTED, _EXPECTED_INDEX = "nearsim_expected", "nearsim_expected_index"
# This file creates roles on the server, which the second installation must not do; it only grants privileges to them.
_GRANTS = "grants.sql"

_RESTORABLE = ("function", "view", "trigger", "comment")


@dataclass(frozen=True, slots=True)
class ObjectDifference:
    """An object that is missing or changed."""

    kind: str
    name: str
    state: Literal["missing", "changed"]
    definition: str  # the statement or expression by which the files define it

    def __str__(self) -> str:
        return f"{self.kind} {self.name} is {self.state}"


def can_compare(connection: Connection) -> bool:
    """Whether the current user may install nearsim a second time, under other names."""
    return bool(run(connection, "may_create_schemas").value())


def compare(connection: Connection) -> list[ObjectDifference]:
    """Return the objects that are missing or differ from the files of the schema, in the order of their creation.

    The files are applied under other names, so that the server prints both definitions, and then rolled back; no object
    in use is locked. Objects that users added are ignored. The user must have the right to create schemas.
    """
    savepoint = connection.begin_nested()
    try:
        is_distributed = placement.has_shards(connection)
        _install_expected(connection, is_distributed=is_distributed)
        run(connection, "qualify_names")
        expected = run(connection, "list_objects", schema=_EXPECTED, index_schema=_EXPECTED_INDEX).rows()
        actual = run(connection, "list_objects", schema="nearsim", index_schema="nearsim_index").rows()
    finally:
        savepoint.rollback()

    existing = {(kind, name): definition for kind, name, definition in actual}
    differences = []
    for kind, name, definition in ((kind, _named(name), _named(text)) for kind, name, text in expected):
        # Citus replaces the table of band rows on the coordinator. Its shards are checked in placement.
        if is_distributed and re.search(r"\bnearsim\.band\b|\bband_shared", name):
            continue
        if (kind, name) not in existing:
            differences.append(ObjectDifference(kind, name, "missing", definition))
        # A comment that differs may be the user's own comment.
        elif existing[kind, name] != definition and kind != "comment":
            differences.append(ObjectDifference(kind, name, "changed", definition))
    return differences


def without_parts(differences: Collection[ObjectDifference]) -> list[ObjectDifference]:
    """Leave out differences in comments, and in the parts and privileges of objects that are missing as a whole."""
    missing = {each.name for each in differences if each.state == "missing"}

    def is_part(difference: ObjectDifference) -> bool:
        places = difference.name.split(" ")[1:] or [difference.name.rpartition(".")[0]]
        return any(place in missing or place.rpartition(".")[0] in missing for place in places)

    return [each for each in differences if each.kind != "comment" and not is_part(each)]


def restore(connection: Connection) -> tuple[list[ObjectDifference], list[ObjectDifference]]:
    """Restore missing or changed views, functions and triggers as the files define them, and reset all privileges.

    Returns the restored objects, and the objects that still differ: those of other kinds, and those that CREATE OR
    REPLACE cannot change. Does nothing if the user may not compare the schema.
    """
    differences = compare(connection) if can_compare(connection) else []
    if not differences:
        return [], []

    for difference in differences:
        if difference.kind in _RESTORABLE:
            try:
                with connection.begin_nested():
                    connection.execute(difference.definition.encode())
            # The object depends on a missing object, or has other columns or types. The comparison below reports it.
            except psycopg.ProgrammingError:
                continue
    run(connection, "reset_rights")

    remaining = without_parts(compare(connection))
    still_different = {(each.kind, each.name) for each in remaining}
    restored = [each for each in without_parts(differences) if (each.kind, each.name) not in still_different]
    return restored, remaining


def _install_expected(connection: Connection, *, is_distributed: bool) -> None:
    """Install nearsim under other names, with the privileges that this database should have."""
    paths = baseline.list_files(baseline.migrations_directory())
    scripts = [path.read_text("utf-8") for path in paths if path.name != _GRANTS]
    if is_distributed:
        functions = files("nearsim_db.store").joinpath("citus/functions")
        scripts += [file.read_text("utf-8") for file in functions.iterdir()]
    run(connection, "create_expected_schema")
    script = re.sub(r"\bnearsim(_index)?\b", rf"{_EXPECTED}\1", "\n;\n".join(scripts))
    connection.execute(script.encode())
    run(connection, "set_expected_rights")


def _named(text: str) -> str:
    """Return a name or definition from the second installation, with the names of the first one."""
    return text.replace(_EXPECTED, "nearsim")
