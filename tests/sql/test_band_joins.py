"""Joins of band rows with band rows, as an analyst writes them, are answered from the index."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from psycopg import sql

from nearsim_db.records import GenerationId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import FIRST_OWN, Leaves, statement
from nearsim_db.store.generations.tables import GenerationTables
from tests.builders.plan_log import explained, plain_session
from tests.builders.selection import some_combinations
from tests.servers.citus import AnyServer

pytestmark = pytest.mark.each_major

OWN, SHARED = Leaves(GenerationId(FIRST_OWN + 7)), Leaves(GenerationId(7))
HEADS = {
    OWN: 20_000,
    SHARED: 3_000,
    Leaves(GenerationId(8)): 12_000,
    Leaves(GenerationId(FIRST_OWN + 9)): 500,
}
BANDS = 16
GENERATIONS = """
INSERT INTO nearsim.collection (collection_id, name) OVERRIDING SYSTEM VALUE VALUES (7, 'c');
INSERT INTO nearsim.profile (profile_id, collection_id, name) OVERRIDING SYSTEM VALUE
SELECT number, 7, 'p' || number FROM unnest(ARRAY[7, 8, 100000007, 100000009]) AS number;
INSERT INTO nearsim.generation (generation_id, profile_id, recipe, fingerprint, state, bands, rows)
OVERRIDING SYSTEM VALUE
SELECT profile_id, profile_id, '{}', 'f', 'live', 16, 4 FROM nearsim.profile;
"""
JOIN = """
SELECT a.doc_id, b.doc_id FROM nearsim.band AS a
JOIN nearsim.band AS b USING (generation_id, band_no, bucket_hash) WHERE {condition}
"""
CONDITIONS = ("{one}", "{one} AND a.doc_id < b.doc_id", "{one} AND a.doc_id <> b.doc_id")


def draw_keys(leaves: Leaves) -> NDArray[np.uint64]:
    """Band keys of which a third are in buckets of about ten."""
    rng = np.random.default_rng(leaves.generation_id)
    heads = HEADS[leaves]
    numbers = np.arange(BANDS, dtype=np.uint64) << np.uint64(56)
    keys = rng.integers(0, 1 << 50, (heads, BANDS), np.uint64)
    shared = rng.random((heads, BANDS)) < 1 / 3
    keys[shared] = rng.integers(0, max(1, heads // 30), int(shared.sum()), np.uint64)
    found: NDArray[np.uint64] = keys + numbers
    return found


def fill(url: str) -> None:
    """Generations with tables of their own, and others that share theirs."""
    engine = open_engine(url)
    with engine.connect(autocommit=True) as connection:
        connection.backend.execute(GENERATIONS.encode())
        for leaves in HEADS:
            GenerationTables(connection, leaves).create()
            GenerationTables(connection, leaves).bands.write(
                np.arange(1, HEADS[leaves] + 1), draw_keys(leaves)
            )
            GenerationTables(connection, leaves).bands.index()
            GenerationTables(connection, leaves).attach()
        for leaves in HEADS:
            connection.execute(sql.SQL("VACUUM (FREEZE, ANALYZE) {}").format(leaves.table("band")))
    engine.dispose()


@pytest.fixture
def analyst(server: AnyServer) -> Iterator[Connection]:
    """A session with PostgreSQL's own settings."""
    with plain_session(server, fill, "SET random_page_cost = 4; SET work_mem = '4MB'") as connection:
        yield connection


@some_combinations(("leaves", [OWN, SHARED]), ("condition", CONDITIONS))
def test_a_join_of_all_band_rows_is_answered_from_the_index(
    analyst: Connection, leaves: Leaves, condition: str
) -> None:
    plan = explained(
        analyst, JOIN.format(condition=condition.format(one=f"generation_id = {leaves.generation_id}"))
    )
    assert not {node["Node Type"] for node in plan} & {"Sort", "Hash", "Hash Join", "Merge Join"}
    (inner,) = (node for node in plan if node.get("Alias") == "b")
    assert inner["Node Type"] in ("Index Scan", "Index Only Scan")
    assert "bucket_hash = a.bucket_hash" in inner["Index Cond"]
    assert inner["Relation Name"] == leaves.name("band")
    assert (
        plan[0]["Actual Rows"]
        == {
            CONDITIONS[0]: links_of(leaves) * 2 + HEADS[leaves] * BANDS,
            CONDITIONS[1]: links_of(leaves),
            CONDITIONS[2]: links_of(leaves) * 2,
        }[condition]
    )


@pytest.mark.parametrize("leaves", [OWN, SHARED], ids=["own tables", "shared tables"])
def test_the_links_of_a_build_are_found_by_index_only_scans(analyst: Connection, leaves: Leaves) -> None:
    parameters = {"low": -(2**63), "high": 2**63 - 1, "bucket_limit": 8}
    plan = explained(analyst, statement("find_links", leaves), parameters)
    scans = [node for node in plan if node.get("Relation Name")]
    assert {(node["Relation Name"], node["Node Type"], node["Heap Fetches"]) for node in scans} == {
        (leaves.name("band"), "Index Only Scan", 0)
    }
    assert not {node["Node Type"] for node in plan} & {"Sort", "Hash Join"}
    sizes = np.unique(draw_keys(leaves), return_counts=True)[1]
    assert plan[0]["Actual Rows"] == int((sizes - 1).sum())
    read = sum(node["Actual Rows"] * node["Actual Loops"] for node in scans)
    assert read <= (parameters["bucket_limit"] + 2) * HEADS[leaves] * BANDS


def links_of(leaves: Leaves) -> int:
    """The pairs of documents that share a bucket, once for each bucket."""
    sizes = np.unique(draw_keys(leaves), return_counts=True)[1]
    return int((sizes * (sizes - 1) // 2).sum())


def test_a_join_of_a_live_generation_by_a_subquery_goes_by_index(analyst: Connection) -> None:
    one = "generation_id = (SELECT generation_id FROM nearsim.live_generations WHERE profile = 'p100000007')"
    plan = explained(analyst, JOIN.format(condition=f"{one} AND a.doc_id < b.doc_id"))
    assert plan[0]["Actual Rows"] == links_of(OWN)
    inner = [node for node in plan if node.get("Alias", "").startswith("b_") and node["Actual Loops"]]
    assert [(node["Relation Name"], node["Node Type"]) for node in inner] == [
        (OWN.name("band"), "Index Scan")
    ]
