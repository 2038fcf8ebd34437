"""Collections whose generations share their tables: each has its own pairs, and is dropped alone."""

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Index
from nearsim_db.indexing.drop_generation import delete_collection
from nearsim_db.indexing.ingest import bulk
from nearsim_db.records import GenerationId
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.driver import Engine
from nearsim_db.store.driver.statements import FIRST_OWN, PARENTS, Leaves, statement
from nearsim_db.store.generations import partitions
from nearsim_db.store.generations.tables import GenerationTables
from tests.builders.plan_log import nodes
from tests.builders.reindex_world import RECIPE, jaccard_pairs, pairs_of, stories, texts_of
from tests.builders.relations import leaves_of

pytestmark = pytest.mark.each_major


def rows_of(url: str, leaves: Leaves) -> dict[str, list[tuple[object, ...]]]:
    """All rows that a generation has, by table."""
    query = sql.SQL("SELECT * FROM {} WHERE generation_id = %s ORDER BY 1, 2, 3")
    with psycopg.connect(url) as connection:
        return {
            parent: connection.execute(query.format(leaves.table(parent)), [leaves.generation_id]).fetchall()
            for parent in PARENTS
        }


def test_two_collections_side_by_side(database_url: str) -> None:
    """Each has the pairs of brute force; dropping one leaves none of its rows and all of the other."""
    with (
        Index.connect(database_url, collection="a") as one,
        Index.connect(database_url, collection="b") as other,
    ):
        for index, edition in ((one, 0), (other, 0)):
            index.create_profile("default", override(Recipe(), RECIPE))
            index.add(stories(40, edition))
        one.add(stories(20, 1))
        first, second = leaves_of(database_url)
        assert first.are_shared and second.are_shared
        for leaves, name in ((first, "a"), (second, "b")):
            expected = jaccard_pairs(texts_of(one.database, name), 0.5)
            assert pairs_of(one.database, leaves.generation_id) == expected != set()
        assert all(rows_of(database_url, first).values())
        kept = rows_of(database_url, second)
        delete_collection(one.database, "a")
        assert not any(rows_of(database_url, first).values())
        assert rows_of(database_url, second) == kept and all(kept.values())


def test_sql_and_python_name_the_same_tables(database_url: str) -> None:
    numbers = [1, 7, FIRST_OWN - 1, FIRST_OWN, FIRST_OWN + 1, 2**31 - 1]
    with psycopg.connect(database_url) as connection:
        for leaves in map(Leaves, map(GenerationId, numbers)):
            named = connection.execute(
                "SELECT nearsim.leaf_of('band', %s)", [leaves.generation_id]
            ).fetchone()
            assert named == (leaves.name("band"),)


@pytest.mark.parametrize("count", [4, 40], ids=["documents that are there", "documents to come"])
def test_a_first_build_of_a_large_collection_has_its_own_tables(
    database_url: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pairs are those of brute force, and nothing is left in the shared tables."""
    monkeypatch.setattr(bulk, "_BATCH_DOCUMENTS", 8)
    monkeypatch.setattr(partitions, "MAX_SHARED_DOCUMENTS", 10)
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), RECIPE))
        (begun,) = leaves_of(database_url)
        if count < 40:
            with psycopg.connect(database_url) as connection:
                connection.cursor().executemany(
                    "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, %s, %s)",
                    [(one.external_id, one.body) for one in stories(40)[count:]],
                )
        index.add(stories(count))
        (leaves,) = leaves_of(database_url)
        assert pairs_of(index.database, leaves.generation_id) == jaccard_pairs(texts_of(index.database), 0.5)
        assert begun.are_shared and not any(rows_of(database_url, begun).values())
        assert not leaves.are_shared


def test_a_build_leaves_statistics_of_its_rows(database_url: str) -> None:
    """Links are found in band rows that were just loaded; a plan for none of them would join each with all."""
    with Index.connect(database_url) as index, psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE nearsim_index.band_shared")
        index.create_profile("default", override(Recipe(), RECIPE))
        index.add(stories(120))
        found = connection.execute(
            "SELECT reltuples, (SELECT count(*) FROM nearsim.band) FROM pg_class"
            " WHERE oid = 'nearsim_index.band_shared'::regclass"
        ).fetchone()
        assert found and found[0] == found[1] > 1_000


def test_tables_are_analyzed_when_they_have_doubled(engine: Engine) -> None:
    """Not for each generation; of those that are newer the planner expects the rows of an average one."""
    with engine.connect(autocommit=True) as connection:
        for number in range(1, 31):
            connection.execute(
                "INSERT INTO nearsim_index.signature_shared"
                " (generation_id, doc_id, revision, feature_count, numbers_digest)"
                " SELECT %s, 1000 * %s + n, 1, 0, 0 FROM generate_series(1, 200) AS n",
                [number, number],
            )
            partitions.report_changes(connection)
            GenerationTables(connection, Leaves(GenerationId(number))).vacuum("signature")
        row = connection.execute(
            "SELECT analyze_count FROM pg_stat_all_tables"
            " WHERE relid = 'nearsim_index.signature_shared'::regclass"
        ).fetchone()
        assert row == (2,)
        explained = connection.execute(
            sql.SQL("EXPLAIN (FORMAT JSON) {}").format(statement("count_features", Leaves(GenerationId(30))))
        ).fetchone()
        assert explained is not None
        scans = [node for node in nodes(explained[0][0]["Plan"]) if node.get("Relation Name")]
        assert all(200 <= node["Plan Rows"] <= 400 for node in scans) and scans


def test_sizes_of_generations_add_up_before_the_first_analyze(engine: Engine) -> None:
    with engine.connect(autocommit=True) as connection:
        connection.execute(
            "ALTER TABLE nearsim_index.signature_shared SET (autovacuum_enabled = false);"
            "INSERT INTO nearsim_index.signature_shared"
            " (generation_id, doc_id, revision, feature_count, numbers_digest)"
            " SELECT 1 + (n % 10) / 7, n, 1, 0, 0 FROM generate_series(1, 10000) AS n"
        )
        partitions.report_changes(connection)
        large, small, none = (
            GenerationTables(connection, Leaves(GenerationId(n))).read_bytes() for n in (1, 2, 3)
        )
        row = connection.execute("SELECT pg_total_relation_size('nearsim_index.signature_shared')").fetchone()
        assert row and (large + small) / row[0] == pytest.approx(1, abs=0.02)
        assert (large / row[0], none) == (pytest.approx(0.7, abs=0.02), 0)
