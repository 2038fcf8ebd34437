"""A Citus cluster gives the answers of one server: after a build, writes, a reindex, a repair and a purge."""

from typing import Any, LiteralString

import pytest
from psycopg import sql

from nearsim_db.admin import access
from nearsim_db.admin.attach import attach_table
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.errors import DatabaseError, InputError
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.driver.codec import unpacked_ids
from nearsim_db.store.driver.statements import statement
from nearsim_db.store.signatures import bands, neighbours
from tests.builders.scale_out_world import answers, documents, index_at, newest_leaves
from tests.builders.workers import application
from tests.servers.citus import CitusServer

pytestmark = pytest.mark.slow("starts a cluster")


@pytest.mark.parametrize("bucket_limit", [8, 64, 0])
@pytest.mark.parametrize(("urls", "few"), [(2, 0), (2, 1_000), (4, 4)], ids="{}".format, indirect=["urls"])
def test_builds_and_writes(
    urls: tuple[str, str], few: int, bucket_limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On 2 and 4 nodes; with members of buckets that are always, never or partly too many to be read at once."""
    monkeypatch.setattr(neighbours, "_MAX_MEAN_MEMBERS", few)
    monkeypatch.setattr(bands, "MIN_BUCKETS_BY_SHARD", 100)
    found = []
    for url in urls:
        with index_at(url, bucket_limit) as index:
            index.add(documents(300, seed=1))
            built = answers(index)
            index.add(documents(60, seed=2, first=280))
            index.delete([f"d{number}" for number in range(0, 100, 7)])
            found.append((built, answers(index)))
    (built, changed), (built_on_nodes, changed_on_nodes) = found
    assert built["pairs"] and built["candidates"] and built["similar"]
    assert any(members > anchors for _, members, anchors, _ in built["buckets"]) == (bucket_limit > 0)
    assert built_on_nodes == built
    assert changed_on_nodes == changed != built


def test_lookups(urls: tuple[str, str]) -> None:
    found = []
    for url in urls:
        with index_at(url, 8) as index:
            index.add(documents(200, seed=3))
            found.append([list(index.check(one, 0.2)) for one in documents(40, seed=4)])
    assert any(found[0])
    assert found[1] == found[0]


def test_reindex_is_compared_promoted_rolled_back_and_dropped(urls: tuple[str, str]) -> None:
    assert _reindex(urls[1]) == _reindex(urls[0])


def _reindex(url: str) -> list[Any]:
    with index_at(url) as index:
        index.add(documents(150, seed=5))
        first = answers(index)
        reindex = Reindex(index.database, "default")
        reindex.start(settings=["match.threshold=0.2"])
        compared = reindex.diff(samples=0)
        reindex.promote()
        second = answers(index)
        assert second["pairs"] != first["pairs"]
        reindex.rollback()
        assert answers(index) == first
        assert [one.finished for one in reindex.drop()] == [True]
        assert newest_leaves(index).generation_id == 1
        return [first, second, compared.pairs]


def test_damaged_band_rows_are_found_and_repaired(urls: tuple[str, str]) -> None:
    with index_at(urls[1]) as index:
        index.add(documents(100, seed=6))
        expected = answers(index)
        leaves = newest_leaves(index)
        with index.database.transaction() as connection:
            table = leaves.table("band")
            connection.execute(sql.SQL("DELETE FROM {} WHERE doc_id % 9 = 0").format(table))
            stray = sql.SQL("INSERT INTO {} (generation_id, bucket_hash, doc_id) VALUES (1, 5, 1), (1, 6, 2)")
            connection.execute(stray.format(table))
        assert not verify_index(index.database, sample=None).is_sound
        assert verify_index(index.database, sample=None, repair=True).is_repaired
        assert answers(index) == expected


def test_purged_documents_leave_no_band_rows_on_the_nodes(urls: tuple[str, str]) -> None:
    found = []
    for url in urls:
        with index_at(url) as index:
            index.add(documents(100, seed=7))
            index.purge([f"d{number}" for number in range(20)])
            assert verify_index(index.database, sample=None).is_sound
            found.append(answers(index))
    assert found[1] == found[0]


def test_only_candidates_reach_the_coordinator(citus: CitusServer) -> None:
    with citus.database() as url, index_at(url, 8) as index:
        index.add(documents(200, seed=8))
        leaves = newest_leaves(index)
        parameters = {"low": -(2**63), "high": 2**63 - 1, "bucket_limit": 4}
        with index.database.transaction() as connection:
            connection.execute("SET LOCAL citus.explain_all_tasks = on")
            links = connection.execute(statement("find_links", leaves), parameters).fetchall()
            command = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) ") + statement("find_links", leaves)
            ((found,),) = connection.execute(command, parameters).fetchall()
            members = connection.execute(
                sql.SQL("SELECT bucket_hash, doc_id FROM {}").format(leaves.table("band"))
            ).fetchall()
    buckets: dict[int, list[int]] = {}
    for bucket, doc_id in sorted(members):
        buckets.setdefault(bucket, []).append(doc_id)
    expected = {
        (bucket, doc_id, tuple(own[: min(place, 4)]))
        for bucket, own in buckets.items()
        for place, doc_id in enumerate(own)
        if place
    }
    assert {(bucket, doc_id, tuple(unpacked_ids(own))) for bucket, doc_id, own in links} == expected
    assert len(links) == len(expected) > 0
    plan = found[0]["Plan"]
    assert plan["Custom Plan Provider"] == "Citus Adaptive" and plan["Actual Rows"] == len(expected)
    assert "Plans" not in plan and "Subplans" not in plan["Distributed Query"]


def test_isolation_is_refused_by_name(citus: CitusServer) -> None:
    with (
        citus.database() as url,
        index_at(url) as index,
        pytest.raises(DatabaseError, match="which has no policies with subqueries"),
    ):
        access.set_isolation(index.database, wanted=True)


def test_tables_of_citus_cannot_be_attached(citus: CitusServer) -> None:
    managed: tuple[LiteralString, ...] = (
        "create_distributed_table('public.story', 'id')",
        "create_reference_table('public.story')",
        "citus_add_local_table_to_metadata('public.story')",
    )
    with citus.database() as url, application(url) as session, index_at(url) as index:
        session.execute("SET search_path = pg_catalog")
        for command in managed:
            session.execute("CREATE TABLE public.story (id bigint PRIMARY KEY, body text)")
            session.execute(f"SELECT {command}")
            with pytest.raises(InputError, match=r"public\.story cannot be attached: it is a table of Citus"):
                attach_table(index.database, "public.story", Columns("id", "body"))
            session.execute("DROP TABLE public.story")
