"""Two tenants in one database: what a reader of the first sees before and after the second exists."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.admin import access
from nearsim_db.records import GenerationId
from nearsim_db.search.answers import list_newest
from nearsim_db.store.database import Database
from nearsim_db.store.driver.statements import PARENTS, Leaves
from nearsim_db.store.generations import partitions
from tests.builders.function_trials import TRIALS
from tests.builders.logins import login, user_of
from tests.builders.relations import identifier
from tests.servers.databases import Server

Connection = psycopg.Connection[tuple[Any, ...]]
Row = dict[str, Any]

# All ids of the other tenant begin with 177, and all its texts and names contain the word `secret`.
FIRST = 1_770_000_000
FIRST_GENERATION = {"shared": 17_700_000, "own": 177_000_000}
FOREIGN = re.compile(r"\b177\d{5,7}\b|secret")
ALIKE = ["the storm closed the ferry for a day", "the storm closed the ferry for a week"]

_RESTARTS: dict[str, LiteralString] = {
    "shared": "ALTER TABLE nearsim.generation ALTER generation_id RESTART {}",
    "own": "ALTER SEQUENCE nearsim.own_generation RESTART {}",
}

# Tables that isolation hides completely.
HIDDEN = {"build_slice", "change", "pending_event", "lease", "lock_secret", "work"}


def tenant(url: str, name: str, word: str) -> dict[str, object]:
    """Create a collection with a pair, a twin and a verdict; return its names and ids."""
    with Index.connect(url, collection=name) as index:
        texts = [*ALIKE, ALIKE[0], f"pears are {word} late this year and few"]
        index.add(
            [Document(f"{word}-{at}", title=word, body=text, source=word) for at, text in enumerate(texts)]
        )
        (generation,) = list_newest(index.database, index.collection)

    with psycopg.connect(url) as connection:
        connection.execute("SELECT nearsim.veto_pair(%s, %s, 'for a test', 'x')", (f"{word}-1", f"{word}-3"))
        asked = connection.execute(
            "SELECT nearsim.ask(%s, collection => %s, deadline => '0 seconds')", (f"a {word}", name)
        ).fetchone()
        ids = connection.execute(
            "SELECT doc_id FROM nearsim.document WHERE collection_id = %s ORDER BY 1",
            (generation.collection_id,),
        ).fetchall()
    assert asked

    # A build dispatches the verdict.
    with Index.connect(url, collection=name) as index:
        index.build()

    doc, like, twin, _ = (row[0] for row in ids)
    return {
        "collection": name,
        "collection_id": generation.collection_id,
        "generation": generation.generation_id,
        "profile": "default",
        "doc": doc,
        "like": like,
        "twin": twin,
        "id": f"{word}-0",
        "twin_id": f"{word}-2",
        "probe": asked[0],
    }


NOWHERE: dict[str, object] = {
    **dict.fromkeys(("collection_id", "generation", "doc", "probe"), 880_000),
    **{"like": 880_001, "twin": 880_002, "id": "nowhere-0", "twin_id": "nowhere-2"},
    **{"collection": "nowhere", "profile": "default"},
}


def filled(trial: LiteralString, given: dict[str, object]) -> sql.Composed:
    """A call with its arguments filled in, and with the names of the generation's tables and functions."""
    leaves = leaves_of_tenant(given)
    names = {f"{name}_leaf": leaves.table(name) for name in (*PARENTS, "pairs_of", "evidence_of")}
    return sql.SQL(trial).format(**names, **{name: sql.Literal(value) for name, value in given.items()})


def leaves_of_tenant(given: dict[str, object]) -> Leaves:
    """The tables of a tenant's generation."""
    return Leaves(GenerationId(int(str(given["generation"]))))


def outcome(connection: Connection, trial: LiteralString, given: dict[str, object]) -> list[str]:
    """The rows or the error of a call, as text. The call is rolled back."""
    call = filled(trial, given)
    try:
        with connection.transaction(force_rollback=True):
            cursor = connection.execute(call)
            return [str(row) for row in cursor.fetchall()] if cursor.description else []
    except psycopg.Error as error:
        reported = error.diag
        return [
            f"{error.sqlstate} {reported.message_primary} {reported.message_detail} {reported.message_hint}"
        ]


def told_apart(answers: list[str], given: dict[str, object]) -> list[str]:
    """Outcomes without the arguments of the calls, to compare calls with different arguments."""
    # Remove the longest arguments first, because an argument may contain another one.
    words = sorted({str(value) for value in given.values()}, key=len, reverse=True)
    return [re.sub(rf"\b({'|'.join(map(re.escape, words))})\b", "?", answer) for answer in answers]


@dataclass
class World:
    """A tenant, and what its reader sees before and after another tenant is created."""

    tables: str
    url: str
    reader: str
    writer: str
    own: dict[str, object]
    foreign: dict[str, object]
    alone: dict[str, list[str]]
    together: dict[str, list[str]]


def relations(url: str) -> dict[str, bool]:
    """Tables and views of the schema, each with whether it is a view."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT relname, relkind = 'v' FROM pg_class "
            "WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace) "
            "AND relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY 1"
        ).fetchall()
    return dict(rows)


def functions(url: str, role: str) -> set[str]:
    """Signatures of the functions that are not immutable and that a role may call.

    A function for a generation's own tables, such as pairs_of_7, is listed as the one for shared tables.
    """
    with psycopg.connect(url) as connection:
        connection.execute("SET search_path = pg_catalog, nearsim, nearsim_index")
        rows = connection.execute(
            "SELECT regexp_replace(oid::regprocedure::text, '_[0-9]+[(]', '_shared(') FROM pg_proc "
            "WHERE pronamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace) "
            "AND (provolatile <> 'i' OR prosecdef) AND has_function_privilege(%s, oid, 'EXECUTE')",
            (role,),
        ).fetchall()
    return {row[0] for row in rows}


def look_round(url: str, reader: str, own: dict[str, object], names: list[str]) -> dict[str, list[str]]:
    """Everything that a reader can see: all rows of these tables and views, and the results of all functions."""
    answers: dict[str, list[str]] = {}
    with psycopg.connect(reader) as connection:
        for name in names:
            reading = sql.SQL("SELECT * FROM {} AS found").format(identifier(name))
            try:
                with connection.transaction(force_rollback=True):
                    answers[name] = sorted(str(row) for row in connection.execute(reading).fetchall())
            except pg.InsufficientPrivilege:
                answers[name] = ["refused"]
        for signature, trial in TRIALS.items():
            answers[signature] = outcome(connection, trial, own)
    return answers


def make_busy(url: str, given: dict[str, object]) -> None:
    """Give a tenant queued and failed work, an attached table, and captured changes of every kind."""
    with psycopg.connect(url) as connection:
        for command in (
            "INSERT INTO nearsim_index.attachment (collection_id, relation, id_column, text_column) "
            "VALUES ({collection_id}, 'pg_catalog.pg_class', 'secret', 'secret')",
            "INSERT INTO nearsim.change (collection_id, doc_id) "
            "VALUES ({collection_id}, {doc}), ({collection_id}, NULL)",
            "INSERT INTO nearsim.change (collection_id, external_id) VALUES ({collection_id}, {id})",
            "INSERT INTO nearsim.work (generation_id, stage, doc_id) VALUES ({generation}, 'compare', 0)",
            "INSERT INTO nearsim.work (generation_id, stage, doc_id, attempts, error) "
            "VALUES ({generation}, 'sign', {doc}, 2, 'secret')",
            "INSERT INTO nearsim_index.lease (worker) VALUES ('secret:1')",
        ):
            values = {name: sql.Literal(value) for name, value in given.items()}
            connection.execute(sql.SQL(command).format(**values))


@contextmanager
def two_tenants(server: Server, tables: str) -> Iterator[World]:
    """Tenant north, and what its reader sees before and after the other tenant is created.

    The generations of the two tenants either have their own tables or share tables.
    """
    with (
        pytest.MonkeyPatch.context() as patch,
        server.database() as url,
        login(url, "nearsim_reader") as reader,
        login(url, "nearsim_writer") as writer,
    ):
        if tables == "own":
            # With this limit, no collection is small enough for shared tables.
            patch.setattr(partitions, "MAX_SHARED_DOCUMENTS", -1)
        north = tenant(url, "north", "plain")
        with Database.connect(url) as database:
            access.grant(database, user_of(reader), "reader", ["north"])
            access.grant(database, user_of(writer), "writer", ["north"])
            access.set_isolation(database, wanted=True)
        with psycopg.connect(reader) as connection:
            asked = connection.execute("SELECT nearsim.ask('mine', deadline => '0 seconds')").fetchone()
            assert asked
            north["probe"] = asked[0]

        names = list(relations(url))
        alone = look_round(url, reader, north, names)

        # From here on, sequences return numbers by which the other tenant's ids can be recognised.
        with psycopg.connect(url) as connection:
            for table, column in (
                ("collection", "collection_id"),
                ("profile", "profile_id"),
                ("document", "doc_id"),
                ("verdict", "verdict_id"),
                ("event", "event_id"),
                ("probe", "probe_id"),
            ):
                parts = {"table": identifier(table), "column": sql.Identifier(column)}
                connection.execute(
                    sql.SQL("ALTER TABLE {table} ALTER {column} RESTART WITH {first}").format(
                        **parts, first=sql.Literal(FIRST)
                    )
                )
            for tables_of, restart in _RESTARTS.items():
                connection.execute(sql.SQL(restart).format(sql.Literal(FIRST_GENERATION[tables_of])))

        foreign = tenant(url, "secret", "secret")
        make_busy(url, foreign)
        together = look_round(url, reader, north, names)
        yield World(tables, url, reader, writer, north, foreign, alone, together)
