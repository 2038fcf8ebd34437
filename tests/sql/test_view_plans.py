"""Views read live generations only, and a condition on one document reads few rows."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from psycopg import sql

from docs.generate import QUERIES
from nearsim_db.records import GenerationId
from nearsim_db.store.citus.placement import is_distributed
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import FIRST_OWN, PARENTS, Leaves, statement
from nearsim_db.store.generations import partitions
from nearsim_db.store.generations.tables import GenerationTables
from tests.builders.plan_log import explained, plain_session, read_by_table
from tests.servers.databases import Server

pytestmark = pytest.mark.each_major

LIVE, RETIRED = Leaves(GenerationId(FIRST_OWN + 7)), Leaves(GenerationId(FIRST_OWN + 8))
VIEWS = (
    "live_generations",
    "documents",
    "pairs",
    "combined_pairs",
    "clusters",
    "duplicates",
    "default_pairs",
    "default_clusters",
    "default_duplicates",
    "first_publications",
    "buckets",
    "profiles",
    "generations",
    "backlog",
    "verdicts",
)
NAMES = """
INSERT INTO nearsim.collection (collection_id, name) OVERRIDING SYSTEM VALUE VALUES (7, 'c');
INSERT INTO nearsim.profile (profile_id, collection_id, name) OVERRIDING SYSTEM VALUE VALUES (7, 7, 'p');
INSERT INTO nearsim.generation (generation_id, profile_id, recipe, fingerprint, state, bands, rows)
OVERRIDING SYSTEM VALUE
SELECT n, 7, '{"match": {"threshold": 0.5, "bucket_limit": 64, "min_shared_bands": 1}}', 'f', state, 32, 4
FROM (VALUES (100000007, 'live'), (100000008, 'retired')) AS made (n, state);
INSERT INTO nearsim.document (doc_id, collection_id, external_id, title) OVERRIDING SYSTEM VALUE
SELECT n, 7, 'd' || n, 'Title' FROM generate_series(1, 6000) AS n;
"""
# Every tenth document is a twin of the one before it; the others are paired with the next but one.
SIGNATURES = """
INSERT INTO {signature}
    (doc_id, revision, feature_count, feature_digest, sketch, numbers_digest, head_id)
SELECT n, 1, 1, gen_random_uuid(), '\\x00', n % 3, CASE n % 10 WHEN 0 THEN n - 1 ELSE n END
FROM generate_series(1, 6000) AS n
"""
CONTENTS = """
INSERT INTO {similar_pair}
    (generation_id, left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size)
SELECT {generation_id}, n, n + 2, 9, 0.9, 0.9, 9, 10 FROM generate_series(1, 5998) AS n WHERE n % 10 NOT IN (0, 8);
INSERT INTO {band} (bucket_hash, doc_id) SELECT n / 2, n FROM generate_series(1, 6000) AS n;
INSERT INTO {cluster_member} (generation_id, doc_id, cluster_id, is_survivor)
SELECT {generation_id}, n, n - n % 20, n % 20 = 0 FROM generate_series(1, 6000) AS n
"""


def fill(url: str) -> None:
    """A collection with a retired generation whose statistics are those of the live one."""
    engine = open_engine(url)
    with engine.connect(autocommit=True) as connection:
        connection.execute(NAMES)
        distributed = is_distributed(connection)
        for leaves in (replace(LIVE, distributed=distributed), replace(RETIRED, distributed=distributed)):
            GenerationTables(connection, leaves).create()
            parts: dict[str, sql.Composable] = {parent: leaves.table(parent) for parent in PARENTS}
            parts["generation_id"] = sql.Literal(leaves.generation_id)
            connection.execute(sql.SQL(SIGNATURES).format(**parts))
            for name in ("index_signatures", "copy_signatures"):
                connection.execute(statement(name, leaves))
            connection.execute(sql.SQL(CONTENTS).format(**parts))
            GenerationTables(connection, leaves).bands.index()
            GenerationTables(connection, leaves).attach()
            for parent in PARENTS:
                connection.execute(sql.SQL("VACUUM ANALYZE {}").format(leaves.table(parent)))
        connection.execute("VACUUM ANALYZE nearsim.document, nearsim.generation")
    engine.dispose()


@pytest.fixture
def analyst(server: Server) -> Iterator[Connection]:
    """A session as analysts have it."""
    with plain_session(server, fill) as connection:
        yield connection


def run(
    connection: Connection, view: str, condition: str = "true", chosen: str = "*"
) -> list[dict[str, Any]]:
    """The nodes of the plan that ran."""
    return explained(connection, f"SELECT {chosen} FROM nearsim.{view} WHERE {condition}")  # noqa: S608


def test_partitions_of_retired_generations_are_never_executed(analyst: Connection) -> None:
    for view in VIEWS:
        executed = read_by_table(run(analyst, view))
        assert executed
        assert not {RETIRED.name(parent) for parent in RETIRED.own} & set(executed), view


def test_pairs_are_of_the_live_generation(analyst: Connection) -> None:
    analyst.execute(
        "DELETE FROM nearsim.similar_pair WHERE generation_id = 100000008; "
        "DELETE FROM nearsim_index.signature_100000008"
    )
    found = run(analyst, "pairs")
    heads, twins = 4800, 600
    own = twins
    # The twin of 9 is 10: it is paired with 7 on the left, and with 11 on the right.
    assert found[0]["Actual Rows"] == heads - 1 + own + twins + twins - 1


NARROW = [
    *(("pairs", condition, 4) for condition in (
        "left_id = 309",
        "right_id = 309",
        "left_id = 310",
        "right_id = 310",
        "left_external_id = 'd309' AND collection = 'c'",
        "right_external_id = 'd309' AND collection = 'c'",
        "left_external_id = 'd310' AND collection = 'c' AND profile = 'p'",
        "right_external_id = 'd310' AND collection = 'c' AND similarity > 0.8",
    )),
    ("default_pairs", "left_id = 309", 4),
    ("default_pairs", "right_external_id = 'd310' AND collection = 'c'", 4),
    ("default_duplicates", "external_id = 'd309' AND collection = 'c'", 24),
    ("combined_pairs", "left_id = 309", 4),
    ("combined_pairs", "right_id = 310 AND collection_id = 7", 4),
    ("combined_pairs", "left_external_id = 'd310' AND collection = 'c' AND profiles && ARRAY['p']", 4),
    ("documents", "doc_id = 309", 24),
    ("documents", "external_id = 'd309' AND collection = 'c'", 24),
    ("duplicates", "doc_id = 309", 24),
    ("duplicates", "external_id = 'd309' AND collection = 'c'", 24),
]  # fmt: skip


def test_one_document_pair_or_cluster_is_found_by_index(analyst: Connection) -> None:
    partitions.analyze_parents(analyst)  # as builds do
    for view, condition, most in NARROW:
        found = run(analyst, view, condition)
        assert 0 < found[0]["Actual Rows"] <= most, (view, condition)
        assert sum(read_by_table(found).values()) < 200, (view, condition)
    for view, rows in (("clusters", 1), ("duplicates", 19)):
        found = run(analyst, view, "cluster_id = 300")
        assert found[0]["Actual Rows"] == rows
        assert read_by_table(found)["cluster_member_shared"] <= 3 * 20


def test_commands_read_each_table_of_these_views_once(analyst: Connection) -> None:
    collection_id = analyst.execute("SELECT collection_id FROM nearsim.live_generations").fetchone()
    assert collection_id
    analyst.execute(
        "INSERT INTO nearsim.verdict (collection_id, left_id, right_id, verdict, by, why) "
        "SELECT %s, n, n + 1, 'pinned', 'x', 'x' FROM generate_series(1, 500) AS n",
        collection_id,
    )
    given = {"collection_id": collection_id[0], "by": None, "undone": False, "min_size": 2}
    for name, expected in (
        ("read_clusters", {"cluster_member_shared": 12_000, "document": 6_300}),
        ("list_verdicts", {"verdict": 500, "document": 6_000}),
        ("list_labels", {"verdict": 500, "document": 6_000}),
    ):
        read = read_by_table(explained(analyst, statement(name, LIVE), given))
        assert {table: read[table] for table in expected if read[table] > expected[table]} == {}, name
    queue = {"collection_id": None, "without": [], "stages": ["sign"]}
    analyst.execute(
        "INSERT INTO nearsim.work (generation_id, doc_id, stage) "
        "SELECT %s, n, 'sign' FROM generate_series(1, 5000) AS n",
        (LIVE.generation_id,),
    )
    assert read_by_table(explained(analyst, statement("read_backlog"), queue))["work"] <= 2 * 5_000


def test_either_side_of_a_pair_is_two_queries_by_index(analyst: Connection) -> None:
    partitions.analyze_parents(analyst)
    sides = (sql.SQL("SELECT * FROM nearsim.pairs WHERE {} = 309").format(sql.Identifier(side))
             for side in ("left_id", "right_id"))  # fmt: skip
    found = explained(analyst, sql.SQL(" UNION ALL ").join(sides))
    assert found[0]["Actual Rows"] == 3  # 307, 310 and 311
    assert sum(read_by_table(found).values()) < 100


def test_the_tables_of_other_generations_are_not_planned(analyst: Connection) -> None:
    numbers = (LIVE.generation_id + 100 + n for n in range(20))
    for leaves in (Leaves(GenerationId(number), is_distributed(analyst)) for number in numbers):
        GenerationTables(analyst, leaves).create()
        GenerationTables(analyst, leaves).attach()
    inner = analyst.backend
    chosen = "generation_id = 100000007 AND similarity > 0.8"
    for view, condition, _ in (*NARROW, ("pairs", chosen, 0), ("clusters", "true", 0)):
        with inner.transaction():
            run(analyst, view, condition)
            locks = inner.execute(
                "SELECT DISTINCT CAST(relation AS regclass)::text FROM pg_locks WHERE pid = pg_backend_pid()"
            ).fetchall()
        assert len(locks) <= 60, (condition, sorted(map(str, locks)))
        assert not any("_1000" in str(table) for (table,) in locks)


def test_parents_are_analyzed_after_they_doubled(analyst: Connection) -> None:
    known = sql.SQL(
        "SELECT reltuples FROM pg_class WHERE oid = to_regclass('nearsim.signature') AND EXISTS ("
        "SELECT FROM pg_stats WHERE tablename = 'signature' AND attname = 'head_id' AND inherited)"
    )
    assert analyst.execute(known).fetchone() is None
    partitions.analyze_if_stale(analyst)
    assert analyst.execute(known).fetchone() == (12_000,)
    analyst.execute(
        "DELETE FROM nearsim_index.signature_100000007 WHERE doc_id > 5000; ANALYZE nearsim_index.signature_100000007"
    )
    partitions.analyze_if_stale(analyst)
    assert analyst.execute(known).fetchone() == (12_000,)
    partitions.analyze_parents(analyst)
    assert analyst.execute(known).fetchone() == (11_000,)
    analyst.execute("UPDATE pg_class SET reltuples = 5000 WHERE oid = to_regclass('nearsim.signature')")
    partitions.analyze_if_stale(analyst)
    assert analyst.execute(known).fetchone() == (11_000,)


def test_statistics_of_parents_contain_no_text(analyst: Connection) -> None:
    partitions.analyze_parents(analyst)
    rows = analyst.execute(
        "SELECT DISTINCT attname::text FROM pg_stats "
        "WHERE inherited AND num_nonnulls(most_common_vals, histogram_bounds) > 0"
    ).fetchall()
    ids = {"generation_id", "doc_id", "head_id", "left_id", "right_id", "cluster_id"}
    assert {row[0] for row in rows} == ids


def test_counts_run_no_subplans_and_those_of_twins_read_no_pairs(analyst: Connection) -> None:
    found = run(analyst, "pairs", chosen="count(*)")
    assert not [node for node in found if node.get("Parent Relationship") == "SubPlan"]
    assert "similar_pair_shared" not in read_by_table(run(analyst, "pairs", "are_twins", "count(*)"))


BUCKETS_OF_TWO = {(n, n + 1, 1) for n in range(2, 6000, 2)}


def test_candidates_read_and_lock_the_live_partition_only(analyst: Connection) -> None:
    inner = analyst.backend
    with inner.transaction():
        rows = inner.execute("SELECT * FROM nearsim.candidates('c', 'p')").fetchall()
        scans = inner.execute(
            "SELECT relname, seq_scan, idx_scan > 0, idx_tup_fetch FROM pg_stat_xact_all_tables "
            "WHERE relname IN ('band_100000007', 'band_100000008')"
        ).fetchall()
        locks = inner.execute(
            "SELECT DISTINCT CAST(relation AS regclass)::text FROM pg_locks "
            "WHERE pid = pg_backend_pid() AND CAST(relation AS regclass)::text LIKE 'nearsim_index.band_%'"
        ).fetchall()
    assert set(rows) == BUCKETS_OF_TWO
    assert sorted(scans) == [("band_100000007", 0, True, 0), ("band_100000008", 0, False, 0)]
    assert locks and all(str(table).startswith("nearsim_index.band_100000007") for (table,) in locks)


def test_the_worked_self_join_reads_the_live_partition_only(analyst: Connection) -> None:
    query = (QUERIES / "self_join.sql").read_text("utf-8").replace("demo", "c").replace("'default'", "'p'")
    assert set(analyst.execute(query.encode()).fetchall()) == BUCKETS_OF_TWO
    executed = read_by_table(explained(analyst, query))
    assert executed["band_100000007"] == 6000 and "band_100000008" not in executed


OTHERS = """
SELECT other.doc_id FROM nearsim.band AS own JOIN nearsim.band AS other USING (generation_id, band_no, bucket_hash)
WHERE own.doc_id = 308 AND other.doc_id <> 308 AND generation_id =
"""


@pytest.mark.parametrize(
    "generation", [str(LIVE.generation_id), "(SELECT max(generation_id) FROM nearsim.live_generations)"]
)
def test_a_join_of_bands_finds_the_buckets_of_one_document_by_index(
    analyst: Connection, generation: str
) -> None:
    found = explained(analyst, OTHERS + generation)
    assert found[0]["Actual Rows"] == 1
    scans = [
        node
        for node in found
        if node.get("Alias", "").startswith("other") and node["Actual Loops"] and "Index Cond" in node
    ]
    assert scans and all("bucket_hash = own" in node["Index Cond"] for node in scans)
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in scans) <= 2
