"""Operators of a tenant see no value of another tenant in statistics when PostgreSQL estimates rows with them."""

import re
from collections.abc import Iterator
from itertools import product
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from nearsim_db.admin.doctor.server import check_roles
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import open_engine
from tests.builders.isolation_world import FOREIGN, Connection, World, relations, two_tenants
from tests.builders.logins import fill, login, user_of
from tests.builders.relations import identifier
from tests.servers.databases import Server

pytestmark = pytest.mark.each_major

CONSTANTS = {"bigint": "5", "integer": "5", "text": "'m'", "double precision": "0.5"}
# An estimator calls its operator's function for the values in the statistics of a column.
OPERATORS: LiteralString = """
CREATE FUNCTION peeking.peek({type}, {type}) RETURNS boolean LANGUAGE plpgsql IMMUTABLE COST 0.0001
AS $$ BEGIN RAISE NOTICE '% %', $1, $2; RETURN true; END $$;
CREATE OPERATOR peeking.<<< (
    LEFTARG = {type}, RIGHTARG = {type}, PROCEDURE = peeking.peek, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR peeking.=== (
    LEFTARG = {type}, RIGHTARG = {type}, PROCEDURE = peeking.peek, RESTRICT = eqsel, JOIN = eqjoinsel);
"""
PLANS: list[LiteralString] = [
    "EXPLAIN SELECT FROM {name} AS x WHERE x.{column} OPERATOR(peeking.<<<) CAST({value} AS {type})",
    "EXPLAIN SELECT FROM {name} AS x WHERE x.{column} OPERATOR(peeking.===) CAST({value} AS {type})",
    "EXPLAIN SELECT FROM {name} AS x JOIN {name} AS y ON x.{column} OPERATOR(peeking.===) y.{column}",
]


@pytest.fixture(scope="module")
def world(server: Server, tables: str) -> Iterator[World]:
    """The tenants, with statistics; the reader has operators that report the values they are called with."""
    with two_tenants(server, tables) as world:
        with psycopg.connect(world.url, autocommit=True) as admin:
            owner = sql.Identifier(user_of(world.reader))
            admin.execute(sql.SQL("CREATE SCHEMA peeking AUTHORIZATION {}").format(owner))
            admin.execute("ANALYZE")
        with psycopg.connect(world.reader) as reader:
            for type_name in CONSTANTS:
                reader.execute(sql.SQL(OPERATORS).format(type=sql.SQL(type_name)))
        yield world


def columns(connection: Connection, names: list[str]) -> list[tuple[str, str, str]]:
    """Name, column and type of all columns of these types."""
    return [
        (name, column, type_name)
        for name in names
        for column, type_name in connection.execute(
            "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute WHERE attnum > 0 AND attrelid = "
            "CAST(%s AS regclass) AND format_type(atttypid, NULL) = ANY (%s)",
            (identifier(name).as_string(connection), list(CONSTANTS)),
        ).fetchall()
    ]


def values_met(world: World, url: str) -> list[str]:
    """What the operators report while a user's queries on all columns are planned."""
    met: list[str] = []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: met.append(str(notice.message_primary)))
        for (name, column, type_name), plan in product(
            columns(connection, list(relations(world.url))), PLANS
        ):
            parts = {
                "name": identifier(name),
                "column": sql.Identifier(column),
                "value": sql.SQL(CONSTANTS[type_name]),
                "type": sql.SQL(type_name),
            }
            try:
                connection.execute(sql.SQL(plan).format(**parts))
            except psycopg.errors.InsufficientPrivilege:
                continue
    return met


@pytest.mark.slow("plans a thousand queries")
def test_estimates_do_not_show_values_of_the_other_tenant(world: World) -> None:
    assert sum(bool(FOREIGN.search(one)) for one in values_met(world, world.url)) > 250
    assert not [one for one in values_met(world, world.reader) if FOREIGN.search(one)]


# Columns with statistics: numbers that nearsim gave, and states of work.
NUMBERED = re.compile(
    r"(doc|other|collection|profile|generation|left|right|head|cluster|survivor|event|verdict|probe|lease)_id$"
    r"|revision$|band_no$|is_survivor$|pruned$|kind$|state$|stage$|are_(heads|twins)$"
)
COMPARED = """
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = CAST(%s AS regclass) AND attnum > 0 AND NOT attisdropped
"""


def estimate(connection: Connection, condition: sql.Composed, table: sql.Identifier) -> float:
    """The rows that PostgreSQL expects."""
    plan = sql.SQL("EXPLAIN (FORMAT JSON) SELECT FROM {} AS x WHERE {}").format(table, condition)
    row = connection.execute(plan).fetchone()
    assert row is not None
    return float(row[0][0]["Plan"]["Plan Rows"])


def below(column: str, value: str, type_name: str = "text") -> sql.Composed:
    """The condition that a column is less than a value."""
    return sql.SQL("x.{} < CAST({} AS {})").format(
        sql.Identifier(column), sql.Literal(value), sql.SQL(type_name)
    )


def search(connection: Connection, table: sql.Identifier, column: str) -> str:
    """Return a value, found letter by letter: the longest text below which no row is expected."""
    letters = "".join(sorted("abcdefghijklmnopqrstuvwxyz-0123456789 "))
    found, fewest = "", estimate(connection, below(column, ""), table)
    while len(found) < 40:
        fitting = [
            one for one in letters if estimate(connection, below(column, found + one), table) <= fewest
        ]
        if not fitting:
            break
        found += fitting[-1]
    return found


@pytest.fixture(scope="module")
def repeated(server: Server, tables: str) -> Iterator[World]:
    """The tenants; each of them has forty documents of one title, and the reader a table with its own."""
    with two_tenants(server, tables) as world:
        with psycopg.connect(world.url, autocommit=True) as admin:
            admin.execute(
                "INSERT INTO nearsim.document (collection_id, external_id, title, body, source, url, published_at) "
                "SELECT given.id, 'n' || n, given.word, given.word, given.word, given.word, '2024-05-31'::timestamptz "
                "FROM generate_series(1, 40) AS n, (VALUES (%s, 'own plum'), (%s, 'secret pear')) AS given (id, word)",
                (world.own["collection_id"], world.foreign["collection_id"]),
            )
            admin.execute(
                sql.SQL("CREATE SCHEMA own AUTHORIZATION {}").format(sql.Identifier(user_of(world.reader)))
            )
        with psycopg.connect(world.reader, autocommit=True) as reader:
            reader.execute("CREATE TABLE own.document AS SELECT * FROM nearsim.document")
            reader.execute(
                "UPDATE own.document SET published_at = created_at + make_interval(days => (doc_id % 30)::int)"
            )
            reader.execute("CREATE INDEX ON own.document (coalesce(published_at, created_at))")
            reader.execute("CREATE STATISTICS own.lowered ON lower(title) FROM own.document")
            reader.execute("CREATE STATISTICS own.together (mcv) ON title, source FROM own.document")
            reader.execute("ANALYZE own.document")
        with psycopg.connect(world.url, autocommit=True) as admin:
            admin.execute("ANALYZE")
        yield world


@pytest.mark.slow("many estimates")
def test_row_estimates_do_not_spell_texts_of_the_other_tenant(repeated: World) -> None:
    with psycopg.connect(repeated.reader, autocommit=True) as reader:
        assert search(reader, sql.Identifier("own", "document"), "title").startswith("own plum")
        for column in ("title", "body", "source", "url", "external_id"):
            assert (
                search(reader, identifier("document"), column) == "z" * 40
            )  # every text, as without any value


@pytest.mark.slow("statistics of every table")
def test_row_estimates_depend_on_no_value_of_an_owner(repeated: World) -> None:
    """For each column that a reader may name: estimates below each stored value, and below one between."""
    varying, tried = set[str](), 0
    with (
        psycopg.connect(repeated.url, autocommit=True) as admin,
        psycopg.connect(repeated.reader, autocommit=True) as reader,
    ):
        for name in relations(repeated.url):
            for column, type_name in admin.execute(COMPARED, (identifier(name).as_string(admin),)).fetchall():
                values = admin.execute(
                    sql.SQL("SELECT DISTINCT CAST(x.{} AS text) FROM {} AS x LIMIT 60").format(
                        sql.Identifier(column), identifier(name)
                    )
                ).fetchall()
                try:
                    rows = {
                        estimate(reader, below(column, value, type_name), identifier(name))
                        for (value,) in values
                        if value
                    }
                except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFunction):
                    continue
                tried += 1
                if len(rows) > 1:
                    varying.add(f"{name}.{column}")
    assert tried > 200
    leaking = {one for one in varying if not NUMBERED.search(one.partition(".")[2])}
    assert not leaking
    assert any(one.endswith(".doc_id") for one in varying)


# Index expressions of a reader's own table and of nearsim's, and expressions with extended statistics.
EXPRESSIONS = """
SELECT nspname, relname, pg_get_indexdef(indexrelid, attnum, false), format_type(atttypid, NULL)
FROM pg_index JOIN pg_attribute ON attrelid = indexrelid
JOIN pg_class AS owner ON owner.oid = indrelid JOIN pg_namespace AS schema ON schema.oid = relnamespace
WHERE nspname IN ('own', 'nearsim', 'nearsim_index') AND indkey[attnum - 1] = 0
UNION ALL
SELECT schema, 'document', 'lower(title)', 'text' FROM (VALUES ('own'), ('nearsim')) AS place (schema)
UNION ALL
SELECT schema, 'document', 'ROW(title, source)', 'record' FROM (VALUES ('own'), ('nearsim')) AS place (schema)
"""


def estimates(
    admin: Connection, reader: Connection, table: sql.Identifier, expression: sql.SQL, kind: str
) -> set[float]:
    """The rows that a reader sees expected below each stored value of an expression, or equal to a pair of texts."""
    if kind == "record":
        conditions = [
            sql.SQL("x.title = {0} AND x.source = {0}").format(sql.Literal(one))
            for one in ("own plum", "secret pear", "neither")
        ]
    else:
        stored = sql.SQL("SELECT DISTINCT CAST({} AS text) FROM {} AS x LIMIT 60").format(expression, table)
        conditions = [
            sql.SQL("{} < CAST({} AS {})").format(expression, sql.Literal(value), sql.SQL(kind))
            for (value,) in admin.execute(stored).fetchall()
            if value
        ]
    return {estimate(reader, one, table) for one in conditions}


def test_row_estimates_of_expressions_depend_on_no_value_of_an_owner(repeated: World) -> None:
    with (
        psycopg.connect(repeated.url, autocommit=True) as admin,
        psycopg.connect(repeated.reader, autocommit=True) as reader,
    ):
        varying = {
            (schema, name, expression): len(
                estimates(admin, reader, sql.Identifier(schema, name), sql.SQL(expression), kind)
            )
            for schema, name, expression, kind in admin.execute(EXPRESSIONS).fetchall()
        }
        age = "COALESCE(published_at, created_at)"
        for expression in (age, "lower(title)", "ROW(title, source)"):
            assert varying.pop(("own", "document", expression)) > 1
            assert varying[("nearsim", "document", expression)] == 1
        assert not {one: rows for one, rows in varying.items() if rows > 1}
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("CREATE STATISTICS own.foreign_texts ON title, source FROM nearsim.document")


STORED = r"""
SELECT tablename, attname, n_distinct, coalesce(CAST(most_common_vals AS text), CAST(histogram_bounds AS text))
FROM pg_stats WHERE schemaname IN ('nearsim', 'nearsim_index')
    AND (attname IN ('external_id', 'name', 'bucket_hash', 'title', 'lower') OR tablename LIKE 'document\_%')
"""
FORGET: LiteralString = """
DELETE FROM pg_statistic
WHERE starelid IN (CAST('nearsim.document' AS regclass), CAST('nearsim.collection' AS regclass),
    CAST('nearsim.band' AS regclass), {})
"""


def test_statistics_are_withheld_again_and_distinctness_is_restored(database_url: str) -> None:
    fill(database_url)
    with psycopg.connect(database_url, autocommit=True) as admin:

        def stored() -> set[tuple[object, ...]]:
            return set(admin.execute(STORED).fetchall())

        def warnings() -> list[str]:
            with open_engine(database_url).connect() as connection:
                return [one.finding for one in check_roles(connection) if one.check == "statistics"]

        admin.execute("ANALYZE")
        before = stored()
        parent = ("band", "bucket_hash", 1.0, None)
        (leaf,) = {str(table) for table, column, _, _ in before - {parent} if column == "bucket_hash"}
        expected = {("document", "external_id"), ("collection", "name"), (leaf, "bucket_hash")}
        assert before == {(*one, -1.0, None) for one in expected} | {parent} and warnings() == []
        admin.execute(
            "CREATE INDEX document_lower ON nearsim.document (lower(title)); "
            "ALTER TABLE nearsim.document ALTER title SET STATISTICS 100, ALTER external_id SET STATISTICS 100; "
            "UPDATE nearsim.document SET title = 'One title'; ANALYZE"
        )
        admin.execute("ANALYZE")
        assert {one[1] for one in stored() - before} == {"external_id", "title", "lower"}
        (found,) = warnings()
        assert "nearsim.document.title" in found and "nearsim.document_lower.lower" in found
        Database.initialise(database_url)
        assert stored() == before and warnings() == []
        admin.execute(
            sql.SQL(FORGET).format(sql.SQL("CAST({} AS regclass)").format(f"nearsim_index.{leaf}"))
        )  # as after a restore
        assert stored() == set()
        with login(database_url, "nearsim_admin") as keeper:
            Database.initialise(keeper)
            assert stored() == (before if admin.info.server_version >= 180000 else set())
        Database.initialise(database_url)
        admin.execute("ANALYZE")
        assert stored() == before
