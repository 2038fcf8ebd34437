"""Operators of a tenant see no value of another tenant in statistics when PostgreSQL estimates rows with them."""

from collections.abc import Iterator
from itertools import product
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from tests.builders.isolation_world import FOREIGN, Connection, World, relations, two_tenants
from tests.builders.logins import user_of
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
def world(server: Server) -> Iterator[World]:
    """The tenants, with statistics; the reader has operators that report the values they are called with."""
    with two_tenants(server) as world:
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
    assert sum(bool(FOREIGN.search(one)) for one in values_met(world, world.url)) > 300
    assert not [one for one in values_met(world, world.reader) if FOREIGN.search(one)]
