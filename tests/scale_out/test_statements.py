"""Statements and functions that a cluster replaces keep their form, and all others that read band rows run there."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import psycopg
import pytest
from psycopg import sql

from nearsim_db import Database
from nearsim_db.records import GenerationId
from nearsim_db.store.driver.statements import Leaves, statement
from nearsim_db.store.signatures.bands import BandTable
from tests.builders.scale_out_world import documents, index_at, newest_leaves
from tests.builders.workers import Application, application
from tests.servers.citus import CitusServer
from tests.store.test_statements import BLOCKS, REPLACED_BLOCKS, REPLACED_FUNCTIONS

pytestmark = pytest.mark.slow("starts a cluster")

THERE = Leaves(GenerationId(1), distributed=True)
_PARAMETERS = {
    **{key: [1, 2] for key in ("doc_ids", "owners", "bucket_hashes")},
    **dict.fromkeys(("amount", "members", "most", "bucket_limit", "batch", "doc_id", "left_id"), 1),
    **{"after": 0, "right_id": 2, "low": -(2**63), "high": 2**63 - 1, "purged_at": None},
    **{"digest": "00000000000000000000000000000000", "band": "nearsim_index.band_shared", "empty": b""},
    **dict.fromkeys(("signature", "pair"), "nearsim_index.signature_shared"),
}
_OTHER_COLUMNS = ("detach_leaf", "delete_bands")  # without columns
_READING = [
    name
    for name, text in BLOCKS.items()
    if "{band}" in text and re.match(r"(--[^\n]*\n)+(SELECT|WITH|DELETE)\b", text)
]
_SHARDS = "SELECT get_shard_id_for_distribution_column('nearsim.band', b) FROM unnest(%s::bigint[]) AS b"
_FORM = """
SELECT pg_get_function_arguments(oid), pg_get_function_result(oid), provolatile, proretset, prosecdef
FROM pg_proc WHERE pronamespace = 'nearsim'::regnamespace AND proname = %s
"""


@pytest.fixture(scope="module")
def url(citus: CitusServer) -> Iterator[str]:
    with citus.database() as url:
        with index_at(url) as index:
            index.add(documents(20, seed=1))
            assert newest_leaves(index) == THERE
        yield url


@pytest.fixture
def session(url: str) -> Iterator[Application]:
    with application(url) as session:
        session.execute("SET citus.subquery_pushdown = on")
        yield session


def composed(name: str, leaves: Leaves, session: Application) -> str:
    """A statement with its parameters."""
    with psycopg.ClientCursor(session) as cursor:
        return cursor.mogrify(statement(name, leaves), _PARAMETERS)


def result_types(session: Application, query: str) -> list[int]:
    """The types of a query's columns."""
    prepared = session.pgconn.prepare(b"", query.encode())
    assert not prepared.error_message, prepared.error_message
    described = session.pgconn.describe_prepared(b"")
    return [described.ftype(column) for column in range(described.nfields)]


@pytest.mark.parametrize("name", [name for name in REPLACED_BLOCKS if name not in _OTHER_COLUMNS])
def test_statements_that_are_replaced_have_the_same_columns(session: Application, name: str) -> None:
    own, replaced = (composed(name, leaves, session) for leaves in (THERE, replace(THERE, distributed=False)))
    assert own != replaced
    assert result_types(session, own) == result_types(session, replaced) != []


@pytest.mark.parametrize("name", _READING)
def test_every_statement_on_band_rows_has_a_plan_on_the_cluster(session: Application, name: str) -> None:
    plan = session.execute(sql.SQL("EXPLAIN ").as_bytes() + composed(name, THERE, session).encode())
    assert "Citus" in str(plan.fetchall())


@pytest.mark.parametrize("name", [name for name, text in REPLACED_BLOCKS.items() if "{in_buckets}" in text])
def test_only_the_shards_of_the_buckets_are_asked(session: Application, name: str) -> None:
    shards = set(session.execute(_SHARDS, [_PARAMETERS["bucket_hashes"]]).fetchall())
    plan = session.execute(sql.SQL("EXPLAIN ").as_bytes() + composed(name, THERE, session).encode())
    # What the coordinator does with the results is a task as well.
    tasks = re.findall(r"Task Count: (\d+)", str(plan.fetchall()))
    assert max(map(int, tasks)) == len(shards) == 2


def test_many_buckets_are_split_by_shard(session: Application, url: str) -> None:
    hashes = np.arange(-3_000, 3_000, dtype=np.int64) << 50
    with Database.connect(url) as database, database.transaction() as connection:
        found = BandTable(connection, THERE).run_by_shard("find_missing_bands", np.arange(6_000), hashes)
        places = [set(session.execute(_SHARDS, [hashes[lot].tolist()]).fetchall()) for lot, _ in found]
        assert all(len(one) == 1 for one in places) and len(set.union(*places)) == len(found) == 8
        assert sorted(np.concatenate([lot for lot, _ in found])) == list(range(6_000))
        assert all(sorted(result.values()) == sorted(lot) for lot, result in found)


@pytest.mark.parametrize("name", REPLACED_FUNCTIONS)
def test_functions_that_are_replaced_have_the_same_form(citus: CitusServer, url: str, name: str) -> None:
    with citus.plain_database() as plain, application(plain) as here, application(url) as there:
        form = here.execute(_FORM, [name]).fetchall()
        assert len(form) == 1
        assert there.execute(_FORM, [name]).fetchall() == form
