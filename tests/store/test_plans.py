"""Plans of the queries that must stay fast: indexes used, rows bounded."""

import math
from collections.abc import Iterator
from hashlib import md5
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from numpy.typing import NDArray
from psycopg import sql

from nearsim_db import Index
from nearsim_db.records import CollectionId, GenerationId
from nearsim_db.search.answers import list_newest
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import FIRST_OWN, Leaves, statement
from nearsim_db.store.generations.tables import GenerationTables
from nearsim_db.store.signatures import bands
from tests.builders.plan_log import explained
from tests.builders.selection import some
from tests.servers.databases import Server

pytestmark = pytest.mark.each_major

LEAVES = Leaves(GenerationId(FIRST_OWN + 7))
HEADS, BANDS, LIMIT = 20_000, 8, 16
HOT = 5


def plan(
    connection: Connection, name: str, parameters: dict[str, object], leaves: Leaves = LEAVES
) -> list[dict[str, Any]]:
    """The nodes of the plan that ran, the outermost first."""
    return explained(connection, statement(name, leaves), parameters)


def draw_keys() -> NDArray[np.uint64]:
    """Band keys of 20,000 heads, nearly all of them in one bucket of the first band."""
    rng = np.random.default_rng(1)
    numbers = np.arange(BANDS, dtype=np.uint64) << np.uint64(56)
    keys: NDArray[np.uint64] = rng.integers(0, 4_000, (HEADS, BANDS), np.uint64) + numbers
    keys[: HEADS * 9 // 10, 0] = HOT
    return keys


def load(url: str) -> None:
    """Fill a band table."""
    engine = open_engine(url)
    with engine.connect() as connection:
        connection.execute(statement("create_leaves", LEAVES))
        GenerationTables(connection, LEAVES).bands.write(np.arange(1, HEADS + 1), draw_keys())
        GenerationTables(connection, LEAVES).bands.index()
        connection.commit()
    with engine.connect(autocommit=True) as connection:
        GenerationTables(connection, LEAVES).vacuum("band")
    engine.dispose()


@pytest.fixture
def loaded(server: Server) -> Iterator[Connection]:
    """A connection to a database with that band table."""
    with server.database(load) as url:
        engine = open_engine(url)
        with engine.connect() as connection:
            yield connection
        engine.dispose()


@pytest.mark.parametrize("name", ["count_buckets", "find_full_buckets"])
def test_buckets_are_counted_in_the_order_of_the_index(loaded: Connection, name: str) -> None:
    nodes = plan(loaded, name, {"bucket_limit": LIMIT})
    assert not [node for node in nodes if node["Node Type"] == "Sort" or node.get("Strategy") == "Hashed"]
    assert HEADS * BANDS in {node["Actual Rows"] for node in nodes if node["Node Type"] == "Index Only Scan"}


@pytest.mark.parametrize("limit", some([4, 0, LIMIT], "every limit"))
def test_buckets_are_counted_alike_in_memory_and_in_the_table(loaded: Connection, limit: int) -> None:
    members: dict[int, list[int]] = {}
    for doc_id, keys in enumerate(draw_keys().tolist(), 1):
        for key in keys:
            members.setdefault(key, []).append(doc_id)
    full = {key: own[limit - 1] for key, own in sorted(members.items()) if 0 < limit < len(own)}
    doc_ids, keys = np.arange(1, HEADS + 1), draw_keys()
    rows = bands.BandRows.of(doc_ids, keys)
    parts = [bands.BandRows.of(doc_ids, keys[:, band : band + 1]) for band in range(keys.shape[1])]
    joined = bands.LoadedBuckets.joined([bands.LoadedBuckets.of(part, limit) for part in parts])
    for found, figures in (
        rows.full_buckets(limit),
        GenerationTables(loaded, LEAVES).bands.find_full_buckets(limit),
        (joined.full, joined.figures),
    ):
        assert dict(zip(found.hashes.tolist(), found.last_anchors.tolist(), strict=True)) == full
        assert figures == {
            "buckets": len(members),
            "largest_bucket": max(map(len, members.values())),
            "buckets_over_limit": len(full),
            "links_left_out": sum(math.comb(len(members[key]) - limit, 2) for key in full),
        }


@pytest.mark.parametrize(
    ("limit", "linked"), some([(LIMIT, range(LIMIT)), (0, range(HEADS))], "either limit")
)
def test_a_member_is_linked_to_the_anchors_before_it(
    loaded: Connection, limit: int, linked: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bands, "_MAX_BATCH_ANCHOR_BYTES", 4_096 * 8)
    members = HEADS * 9 // 10 if limit else 700
    loaded.execute(
        sql.SQL("DELETE FROM {} WHERE bucket_hash = %s AND doc_id > %s").format(LEAVES.table("band")),
        [HOT, members],
    )
    blocks = list(GenerationTables(loaded, LEAVES).bands.stream_links(limit, (HOT, HOT)))
    assert len(blocks) > 20 and max(len(one.left) for one in blocks) <= 4_096
    assert {bucket for one in blocks for bucket in one.buckets.tolist()} == {HOT}
    found = [pair for one in blocks for pair in zip(one.left.tolist(), one.right.tolist(), strict=True)]
    expected = [(linked[at] + 1, right) for right in range(2, members + 1) for at in linked[: right - 1]]
    assert found == expected


@pytest.mark.parametrize("bucket", [HOT, 17])
def test_lookup_is_index_only_and_bounded(loaded: Connection, bucket: int) -> None:
    parameters = {"doc_ids": [HEADS - 1], "bucket_hashes": [bucket], "bucket_limit": LIMIT}
    nodes = plan(loaded, "look_up_candidates", parameters)
    scans = [node for node in nodes if node.get("Relation Name")]
    assert {node["Node Type"] for node in scans} == {"Index Only Scan"}
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in scans) <= 2 * LIMIT


def test_anchors_of_large_buckets_are_reported(loaded: Connection) -> None:
    keys = np.array([[HOT], [HOT]], np.uint64)
    found = GenerationTables(loaded, LEAVES).buckets.look_up_candidates(
        LIMIT, np.array([3, HEADS * 9 // 10]), keys
    )
    assert found.anchors.tolist() == [3]
    assert {(3, other) for other in range(1, LIMIT + 1) if other != 3} < {
        tuple(pair) for pair in found.linked.tolist()
    }


def test_anchors_read_their_bucket_in_batches(loaded: Connection) -> None:
    keys, seen, after = np.array([[HOT, 17]], np.uint64), list[int](), 0
    while len(
        slice := GenerationTables(loaded, LEAVES).buckets.look_up_members(LIMIT, 3, keys, after, 1_000)
    ):
        assert len(slice) <= 1_000
        seen += slice.tolist()
        after = seen[-1]
    assert seen == list(range(LIMIT + 1, HEADS * 9 // 10 + 1))


@pytest.mark.parametrize("after", [0, HEADS // 2])
def test_bucket_batch_is_index_only_and_bounded(loaded: Connection, after: int) -> None:
    parameters = {
        "doc_id": 3,
        "bucket_hashes": [HOT, 17],
        "bucket_limit": LIMIT,
        "after": after,
        "batch": 500,
    }
    nodes = plan(loaded, "look_up_members", parameters)
    scans = [node for node in nodes if node.get("Relation Name")]
    assert {node["Node Type"] for node in scans} == {"Index Only Scan"}
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in scans) <= 2 * (LIMIT + 500)


def test_other_documents_read_no_bucket(loaded: Connection) -> None:
    keys = np.array([[HOT]], np.uint64)
    assert not len(GenerationTables(loaded, LEAVES).buckets.look_up_members(LIMIT, LIMIT + 1, keys, 0, 1_000))


def test_text_lookup_is_index_only_and_bounded(loaded: Connection) -> None:
    serve(loaded)
    keys = {"bucket_hashes": [HOT, 17], "digest": UUID(int=1)}
    parameters = {**keys, "bucket_limit": LIMIT, "purged_at": None}
    nodes = plan(loaded, "look_up_anchors", parameters)
    scans = [node for node in nodes if node.get("Relation Name") == LEAVES.name("band")]
    assert {node["Node Type"] for node in scans} == {"Index Only Scan"}
    assert 0 < sum(node["Actual Rows"] * node["Actual Loops"] for node in scans) <= 2 * LIMIT
    others = [node for node in nodes if node.get("Relation Name") == LEAVES.name("signature")]
    assert others and all("Index" in node["Node Type"] for node in others)


def test_twins_are_found_by_index(loaded: Connection) -> None:
    serve(loaded)
    loaded.execute(
        "INSERT INTO nearsim_index.signature_100000007 "
        "(doc_id, revision, feature_count, feature_digest, sketch, numbers_digest, head_id) "
        "SELECT n, 1, 1, gen_random_uuid(), '\\x00', 0, n FROM generate_series(1, 5000) AS n"
    )
    nodes = plan(loaded, "read_twins", {"digests": [UUID(int=1)]})
    scans = [node for node in nodes if node.get("Relation Name") == "signature_100000007"]
    assert scans and "Seq Scan" not in {node["Node Type"] for node in scans}


def test_heads_are_assigned_by_the_index_on_digests(loaded: Connection) -> None:
    loaded.execute(
        "INSERT INTO nearsim_index.signature_100000007 "
        "(doc_id, revision, feature_count, feature_digest, sketch, numbers_digest, head_id) "
        "SELECT n, 1, 1, md5((n / 2)::text)::uuid, '\\x00', 0, n FROM generate_series(1, 20000) AS n"
    )
    loaded.execute(statement("index_signatures", LEAVES))
    loaded.execute("ANALYZE nearsim_index.signature_100000007")
    digests = [UUID(md5(str(n).encode(), usedforsecurity=False).hexdigest()) for n in range(1, 301)]
    nodes = plan(loaded, "reassign_digests", {"digests": digests})
    assert "Seq Scan" not in {node["Node Type"] for node in nodes}
    heads = loaded.execute(
        "SELECT doc_id FROM nearsim_index.signature_100000007 WHERE head_id = doc_id - 1"
    ).fetchall()
    assert sorted(heads) == [(2 * n + 1,) for n in range(1, 301)]
    nodes = plan(loaded, "assign_heads", {})
    assert "Hashed" not in {node.get("Strategy") for node in nodes}
    loaded.rollback()


def test_documents_within_an_age_are_found_by_index(loaded: Connection) -> None:
    serve(loaded, age="1 hour")
    loaded.execute(
        "INSERT INTO nearsim.document (collection_id, external_id, published_at) "
        "SELECT 7, n, now() - make_interval(mins => n) FROM generate_series(1, 20000) AS n"
    )
    loaded.execute("ANALYZE nearsim.document")
    within: dict[str, object] = {"collection_id": 7, "by_age": True, "after": 0, "vectors": False}
    for name, parameters in (
        ("plan_sign_slices", within | {"documents": 10, "all_signed": False}),
        ("read_unsigned_documents", within | {"through": 20_000}),
    ):
        nodes = plan(loaded, name, parameters)
        reads = [node for node in nodes if node.get("Relation Name") == "document"]
        assert [node["Index Name"] for node in reads] == ["document_age"]
    loaded.rollback()


@pytest.mark.parametrize(
    "name",
    [
        *("read_documents", "find_existing_documents"),
        *("find_retained", "read_review_document"),
    ],
)
def test_documents_of_a_collection_that_statistics_do_not_know_are_read_by_key(
    loaded: Connection, name: str
) -> None:
    """An index on the collection seems to have none of its documents then, and has all of them."""
    serve(loaded)
    loaded.execute(
        "INSERT INTO nearsim.collection (collection_id, name) OVERRIDING SYSTEM VALUE VALUES (8, 'd')"
    )
    fill = "INSERT INTO nearsim.document (collection_id, external_id) SELECT %s, n FROM generate_series(1, %s) AS n"
    loaded.execute(fill, (8, 20_000))
    loaded.execute("ANALYZE nearsim.document")
    loaded.execute(fill, (7, 5_000))
    newest = loaded.execute("SELECT doc_id FROM nearsim.document ORDER BY doc_id DESC LIMIT 1000").fetchall()
    within = {"collection_id": 7, "vectors": False, "characters": 9}
    nodes = plan(loaded, name, {"doc_ids": [doc_id for (doc_id,) in newest], **within})
    reads = [node for node in nodes if node.get("Relation Name") == "document"]
    assert [node["Index Name"] for node in reads] == ["document_pkey"]
    loaded.rollback()


def test_slices_with_few_documents_for_their_range_are_read_by_age(loaded: Connection) -> None:
    serve(loaded)
    loaded.execute(
        "INSERT INTO nearsim.document (collection_id, external_id, published_at) "
        "SELECT 7, n, now() - make_interval(hours => n % 100) FROM generate_series(1, 1000) AS n"
    )
    set_age = "UPDATE nearsim.generation SET recipe = jsonb_build_object('retain', jsonb_build_object('age', %s::text))"
    for age, by_age in (("90 minutes", True), ("90 hours", False), ("none", False)):
        loaded.execute(set_age, [age])
        GenerationTables(loaded, LEAVES).slices.plan_signing(
            CollectionId(7), 10, by_age=age != "none", all_signed=False
        )
        part = GenerationTables(loaded, LEAVES).slices.take("sign")
        assert part is not None and part.by_age == by_age
        GenerationTables(loaded, LEAVES).slices.delete()
    loaded.rollback()


def serve(connection: Connection, age: str = "none") -> None:
    """Make the generation live, with all its indexes, and a retention age."""
    GenerationTables(connection, LEAVES).signatures.index()
    connection.execute(
        "INSERT INTO nearsim.collection (collection_id, name) OVERRIDING SYSTEM VALUE VALUES (7, 'c')"
    )
    connection.execute(
        "INSERT INTO nearsim.profile (profile_id, collection_id, name) OVERRIDING SYSTEM VALUE VALUES (7, 7, 'p')"
    )
    connection.execute(
        "INSERT INTO nearsim.generation (generation_id, profile_id, recipe, fingerprint, state) "
        "OVERRIDING SYSTEM VALUE "
        "VALUES (100000007, 7, jsonb_build_object('retain', jsonb_build_object('age', %s::text)), 'f', 'live')",
        [age],
    )


def test_deleting_bands_uses_the_index(loaded: Connection) -> None:
    nodes = plan(loaded, "delete_bands", {"doc_ids": [3, 4], "bucket_hashes": [HOT, HOT]})
    assert "Seq Scan" not in {node["Node Type"] for node in nodes}
    loaded.rollback()


@pytest.mark.parametrize("name", ["take_work", "find_work"])
def test_unanalyzed_queue_is_read_only_as_far_as_needed(engine: Engine, name: str) -> None:
    with Index.connect(engine.url) as index:
        index.add([])
        (generation,) = list_newest(index.database, index.collection)
        with index.database.transaction() as connection:
            connection.execute(
                (
                    "INSERT INTO nearsim.work "
                    "(generation_id, stage, doc_id, doc_ids, lease_id, attempts, set_aside_at) "
                    "SELECT %(generation)s, 'sign', CASE WHEN n <= 1000 THEN -n ELSE n END, "
                    "CASE WHEN n <= 1000 THEN ARRAY[n] END, CASE WHEN n <= 1000 THEN 1 END, "
                    "CASE WHEN n <= 20000 THEN 5 ELSE 0 END, CASE WHEN n <= 20000 THEN now() END "
                    "FROM generate_series(1, 50000) AS n"
                ),
                {"generation": generation.generation_id},
            )
            parameters: dict[str, object] = {
                "take_work": {"stage": "sign", "lease_id": 1, "batch": 100},
                "find_work": {"stages": ["sign", "search"], "collection_id": None},
            }[name]  # type: ignore[assignment]
            nodes = plan(connection, name, parameters, generation.leaves)
        scans = [
            node for node in nodes if node.get("Relation Name") == "work" and "Scan" in node["Node Type"]
        ]
        assert scans and {node["Node Type"] for node in scans} <= {
            "Index Scan",
            "Index Only Scan",
            "Tid Scan",
        }
        assert sum(node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in scans) <= 300
