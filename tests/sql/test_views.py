"""The views against brute force over the documents, with and without a retired generation."""

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest

from nearsim_db import Document, Index
from nearsim_db.records import Cluster
from tests.builders.sql_world import EMPTY, RULES, World, world

LIMIT = 3
BY_NAME = "SELECT left_id, right_id FROM nearsim.pairs WHERE {} = %s AND collection = 'default'"


def rows(found: World, command: str, *values: object) -> list[dict[str, Any]]:
    """Rows as dictionaries."""
    with found.index.database.engine.begin() as connection:
        cursor = connection.execute(command.encode(), values)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor]


def twin_pairs(found: World) -> list[tuple[int, int]]:
    features = found.features
    return [
        pair for pair in combinations(found.doc_ids, 2) if features[pair[0]] == features[pair[1]] != set()
    ]


def all_pairs(found: World) -> set[tuple[int, int]]:
    return {pair for pair in combinations(found.doc_ids, 2) if found.is_pair(*pair)}


def test_pairs_have_all_pairs_with_evidence(whole: World) -> None:
    expected, twins = all_pairs(whole), twin_pairs(whole)
    assert twins and set(twins) < expected
    check_orders_of_twins(whole, expected)
    found = {(row["left_id"], row["right_id"]): row for row in rows(whole, "SELECT * FROM nearsim.pairs")}
    assert set(found) == expected
    assert {pair for pair, row in found.items() if row["are_twins"]} == set(twins)
    firsts = {frozenset(features): one for one, features in reversed(whole.features.items())}
    heads = set(firsts.values())
    assert {pair for pair, row in found.items() if row["are_heads"]} == {
        pair for pair in expected if set(pair) <= heads
    }
    for (left, right), row in found.items():
        assert (row["intersection_size"], row["union_size"]) == whole.sizes(left, right)
        assert row["similarity"] == pytest.approx(whole.similarity(left, right))
        assert row["estimate"] == pytest.approx(whole.estimate(left, right), abs=1e-6)
        assert row["shared_bands"] == len(whole.bands(left, right))
        assert row["numbers_differ"] == (whole.numbers(left) != whole.numbers(right))
        assert (row["left_external_id"], row["right_external_id"]) == (whole.names[left], whole.names[right])
        assert row["left_title"] == f"Title 7 of {whole.names[left]}"
        assert (row["verdict"], row["verified_at"] is None) == (None, row["are_twins"])
    assert {row["numbers_differ"] for row in found.values()} == {True, False}


def check_orders_of_twins(found: World, expected: set[tuple[int, int]]) -> None:
    """Twins are in pairs on either side, before and after the pair's other head."""
    heads: dict[frozenset[int], int] = {}
    head = {one: heads.setdefault(frozenset(found.features[one]), one) for one in found.doc_ids}
    kinds = {
        (left != head[left], right != head[right], head[left] < head[right])
        for left, right in expected
        if head[left] != head[right]
    }
    assert {(True, True, True), (True, True, False), (True, False, True), (False, True, False)} < kinds


def test_twins_may_differ_in_ignored_numbers(database_url: str) -> None:
    with world(database_url, "shingle.min_token_length=2") as found:
        twins = {pair: found.numbers(pair[0]) != found.numbers(pair[1]) for pair in twin_pairs(found)}
        assert set(twins.values()) == {True, False}
        reported = found.ask("SELECT left_id, right_id, numbers_differ FROM nearsim.pairs WHERE are_twins")
        assert {(left, right): differ for left, right, differ in reported} == twins


@pytest.mark.slow("plans of many collections")
def test_pairs_of_one_document_by_id_and_external_id(whole: World) -> None:
    expected = all_pairs(whole)
    for side, place in (("left", 0), ("right", 1)):
        for doc_id, name in list(whole.names.items())[::11]:
            partners = {pair for pair in expected if pair[place] == doc_id}
            for column, value in ((f"{side}_id", doc_id), (f"{side}_external_id", name)):
                command = BY_NAME.format(column)
                assert set(whole.ask(command, value)) == partners


def test_pairs_show_the_current_verdict(whole: World) -> None:
    (first, second, third, *_) = sorted(all_pairs(whole))
    insert = (
        "INSERT INTO nearsim.verdict (collection_id, left_id, right_id, verdict, by, why, undone_by, "
        "undone_why, undone_at) "
        "SELECT collection_id, %s, %s, %s, 'me', 'known', %s, %s, %s "
        "FROM nearsim.collection WHERE name = 'default'"
    )
    whole.ask(insert, *first, "pinned", None, None, None)
    whole.ask(insert, *second, "vetoed", None, None, None)
    whole.ask(insert, *third, "vetoed", "you", "an error", "2026-01-01")
    reported = whole.ask("SELECT left_id, right_id, verdict FROM nearsim.pairs WHERE verdict IS NOT NULL")
    assert sorted(reported) == [(*first, "pinned"), (*second, "vetoed")]


def test_verdicts_without_a_pair_or_document_are_shown(whole: World) -> None:
    pairs = all_pairs(whole)
    unlike = next(pair for pair in combinations(whole.doc_ids, 2) if pair not in pairs)
    (alike, *_) = sorted(pair for pair in pairs if not {*pair} & {*unlike})
    whole.ask("SELECT nearsim.pin_pair_by_doc_id(%s, %s, 'the same event', 'me')", *unlike)
    whole.ask("SELECT nearsim.veto_pair_by_doc_id(%s, %s, 'other years', 'me')", *alike)
    whole.ask("SELECT nearsim.undo_verdict_by_doc_id(%s, %s, 'the same year', 'you')", *alike)
    assert whole.ask("SELECT FROM nearsim.pairs WHERE verdict IS NOT NULL") == []
    shown = rows(whole, "SELECT * FROM nearsim.verdicts ORDER BY verdict_id")
    assert [
        (
            row["left_id"],
            row["right_id"],
            row["verdict"],
            row["by"],
            row["why"],
            row["undone_by"],
            row["undone_why"],
        )
        for row in shown
    ] == [
        (*unlike, "pinned", "me", "the same event", None, None),
        (*alike, "vetoed", "me", "other years", "you", "the same year"),
    ]
    assert [row["undone_at"] is None for row in shown] == [True, False]
    for row in shown:
        assert row["collection"] == "default"
        assert row["left_external_id"] == whole.names[row["left_id"]]
        assert row["right_external_id"] == whole.names[row["right_id"]]
        assert row["right_title"] == f"Title 7 of {whole.names[row['right_id']]}"
    whole.ask("DELETE FROM nearsim.document WHERE doc_id = %s", unlike[0])
    (gone, _) = rows(whole, "SELECT * FROM nearsim.verdicts ORDER BY verdict_id")
    assert (gone["left_external_id"], gone["left_title"]) == (None, None)
    assert gone["right_external_id"] == whole.names[unlike[1]]


def cluster_names(found: World) -> list[tuple[str, set[str]]]:
    return sorted(
        (row["survivor_external_id"], set(row["members"]))
        for row in rows(
            found,
            "SELECT survivor_external_id, array_agg(external_id) AS members FROM ("
            "SELECT cluster_id, external_id, survivor_external_id FROM nearsim.duplicates UNION "
            "SELECT cluster_id, survivor_external_id, survivor_external_id FROM nearsim.clusters) AS member "
            "GROUP BY survivor_external_id",
        )
    )


def read_clusters(found: World) -> list[tuple[str, set[str]]]:
    def named(cluster: Cluster) -> tuple[str, set[str]]:
        assert cluster.survivor is not None
        return cluster.survivor, set(cluster.members)

    return sorted(map(named, found.index.clusters()))


def test_clusters_are_the_components_of_the_pairs(whole: World) -> None:
    components = list(nx.connected_components(nx.Graph(all_pairs(whole))))
    found = rows(whole, "SELECT * FROM nearsim.clusters")
    assert sorted(row["documents"] for row in found) == sorted(map(len, components))
    assert sorted(row["survivor_id"] for row in found) == sorted(map(min, components))
    assert cluster_names(whole) == read_clusters(whole)
    duplicates = Counter(whole.ask("SELECT doc_id, survivor_id FROM nearsim.duplicates"))
    assert duplicates == Counter(
        (one, min(group)) for group in components for one in group if one != min(group)
    )


def test_clusters_show_dates_and_sources_of_their_documents(whole: World) -> None:
    whole.ask(
        "UPDATE nearsim.document SET source = 's' || doc_id %% 3, published_at = '2026-01-01'::date + doc_id::int"
    )
    for row in rows(whole, "SELECT * FROM nearsim.clusters"):
        members = [row["survivor_id"]]
        command = "SELECT doc_id FROM nearsim.duplicates WHERE cluster_id = %s"
        members += [doc_id for (doc_id,) in whole.ask(command, row["cluster_id"])]
        assert len(members) == row["documents"]
        assert row["sources"] == len({doc_id % 3 for doc_id in members})
        dates = whole.ask(
            "SELECT ('2026-01-01'::date + %s)::text, ('2026-01-01'::date + %s)::text",
            min(members),
            max(members),
        )
        assert (str(row["first_published_at"])[:10], str(row["last_published_at"])[:10]) == dates[0]


def test_first_member_replaces_a_deleted_survivor(whole: World) -> None:
    (largest, *_, smallest) = rows(
        whole, "SELECT * FROM nearsim.clusters ORDER BY documents DESC, cluster_id"
    )
    kept = whole.ask(
        "SELECT min(doc_id) FROM nearsim.duplicates WHERE cluster_id = %s", largest["cluster_id"]
    )
    whole.ask("DELETE FROM nearsim.document WHERE doc_id = %s", largest["survivor_id"])
    whole.ask(
        "DELETE FROM nearsim.document WHERE doc_id IN (SELECT doc_id FROM nearsim.duplicates WHERE cluster_id = %s)",
        smallest["cluster_id"],
    )
    now = {row["cluster_id"]: row for row in rows(whole, "SELECT * FROM nearsim.clusters")}
    assert smallest["cluster_id"] not in now
    assert now[largest["cluster_id"]]["survivor_id"] == kept[0][0]
    assert now[largest["cluster_id"]]["documents"] == largest["documents"] - 1
    survivors = whole.ask(
        "SELECT DISTINCT survivor_id FROM nearsim.duplicates WHERE cluster_id = %s", largest["cluster_id"]
    )
    assert survivors == kept
    assert cluster_names(whole) == read_clusters(whole)
    gone = whole.ask(
        "SELECT count(*) FROM nearsim.pairs WHERE %s IN (left_id, right_id)", largest["survivor_id"]
    )
    assert gone == [(0,)]


def test_survivors_moved_to_another_collection_are_replaced(whole: World) -> None:
    (cluster, moved, kept), *_ = whole.ask(
        "SELECT cluster_id, survivor_id, min(doc_id) FROM nearsim.duplicates "
        "GROUP BY cluster_id, survivor_id HAVING count(*) > 1 ORDER BY cluster_id"
    )
    away = whole.index.database.create_collection("away").collection_id
    whole.ask("UPDATE nearsim.document SET collection_id = %s WHERE doc_id = %s", away, moved)
    survivors = "SELECT DISTINCT survivor_id FROM nearsim.{} WHERE cluster_id = %s"
    for view in ("duplicates", "clusters"):
        assert whole.ask(survivors.format(view), cluster) == [(kept,)]
    assert whole.ask("SELECT count(*) FROM nearsim.duplicates WHERE doc_id = %s", kept) == [(0,)]


@pytest.mark.slow("several builds")
@pytest.mark.usefixtures("own_tables")
def test_builds_update_row_counts_of_parents(whole: World) -> None:
    for parent in ("signature", "similar_pair", "cluster_member"):
        counted = whole.ask(f"SELECT count(*) FROM nearsim.{parent}")  # noqa: S608
        known = "SELECT CAST(reltuples AS bigint) FROM pg_class WHERE oid = to_regclass(%s)"
        assert whole.ask(known, f"nearsim.{parent}") == counted


@pytest.mark.slow("several builds")
def test_buckets_over_the_limit_are_counted(database_url: str) -> None:
    with world(database_url, f"match.bucket_limit={LIMIT}", "bands.rows=2") as small:
        check_buckets(small)
        small.ask(
            "UPDATE nearsim.generation SET recipe = jsonb_set(recipe, '{match,bucket_limit}', '0') WHERE state = 'live'"
        )
        assert small.ask(
            "SELECT bool_and(anchors = members AND left_out = 0 AND NOT is_hot) FROM nearsim.buckets"
        ) == [(True,)]


def check_buckets(small: World) -> None:
    """The view counts what brute force counts."""
    heads = {frozenset(small.features[one]): one for one in reversed(small.doc_ids)}
    heads.pop(frozenset(), None)
    keys = small._encoder.matrix_keys(np.stack([small.sketches[one] for one in heads.values()]))
    members = Counter(keys.reshape(-1).astype(np.int64).tolist())
    expected = {
        key: (key >> 56 & 255, n, min(n, LIMIT), max(0, n - LIMIT) * (n - LIMIT - 1) // 2, n > LIMIT)
        for key, n in members.items()
        if n > 1
    }
    assert any(one[4] for one in expected.values())
    found = small.ask("SELECT bucket_hash, band_no, members, anchors, left_out, is_hot FROM nearsim.buckets")
    assert {row[0]: row[1:] for row in found} == expected
    assert len(found) == len(expected)
    recounted = small.index.stats(recount=True)
    assert recounted["links_left_out"] == sum(one[3] for one in expected.values())


def test_every_document_has_a_state(whole: World) -> None:
    heads: dict[frozenset[int], int] = {}
    expected = {}
    for doc_id in whole.doc_ids:
        head = heads.setdefault(frozenset(whole.features[doc_id]), doc_id)
        expected[doc_id] = "indexed" if head == doc_id else "twin"
    (empty,) = [doc_id for doc_id, name in whole.names.items() if name == EMPTY]
    edited, deleted, *_ = [doc_id for doc_id in whole.doc_ids if doc_id != empty]
    expected[empty], expected[edited] = "no features", "outdated"
    del expected[deleted]
    whole.ask("UPDATE nearsim.document SET body = body || ' more' WHERE doc_id = %s", edited)
    whole.ask("DELETE FROM nearsim.document WHERE doc_id = %s", deleted)
    ((late,),) = whole.ask(
        "INSERT INTO nearsim.document (collection_id, external_id, body) "
        "SELECT collection_id, 'late', 'new words' FROM nearsim.collection RETURNING doc_id"
    )
    expected[late] = "waiting"
    found = rows(whole, "SELECT * FROM nearsim.documents")
    assert {row["doc_id"]: row["state"] for row in found} == expected
    assert len(found) == len(expected)
    sizes = {row["doc_id"]: row["feature_count"] for row in found if row["doc_id"] != late}
    assert sizes == {doc_id: len(whole.features[doc_id]) for doc_id in sizes}
    clustered = {one for pair in all_pairs(whole) for one in pair} - {deleted}
    assert {row["doc_id"] for row in found if row["cluster_id"] is not None} == clustered


def test_documents_have_a_row_per_profile_or_one_without(whole: World) -> None:
    whole.index.create_profile("other", whole.profile.recipe)
    whole.ask("INSERT INTO nearsim.collection (name) VALUES ('bare')")
    whole.ask(
        "INSERT INTO nearsim.document (collection_id, external_id) "
        "SELECT collection_id, 'lonely' FROM nearsim.collection WHERE name <> 'default'"
    )
    shown = defaultdict(set)
    for profile, state, doc_id in whole.ask("SELECT profile, state, doc_id FROM nearsim.documents"):
        shown[profile, state == "not indexed"].add(doc_id)
    assert set(shown) == {("default", False), ("other", False), (None, True)}
    assert shown["default", False] == shown["other", False] == set(whole.doc_ids)
    assert len(shown[None, True]) == 1


def test_views_of_the_default_profile_count_once(whole: World) -> None:
    counted = {view: whole.ask(f"SELECT count(*) FROM nearsim.{view}") for view in ("pairs", "clusters")}  # noqa: S608
    duplicates = whole.ask("SELECT * FROM nearsim.duplicates ORDER BY doc_id")
    whole.index.create_profile("second", whole.profile.recipe)

    for view, count in counted.items():
        assert whole.ask(f"SELECT count(*) FROM nearsim.{view}") > count  # noqa: S608
        assert whole.ask(f"SELECT count(*) FROM nearsim.default_{view}") == count  # noqa: S608
    assert whole.ask("SELECT * FROM nearsim.default_duplicates ORDER BY doc_id") == duplicates
    assert whole.ask("SELECT bool_and(copy_of = survivor_external_id) FROM nearsim.duplicates") == [(True,)]

    # Functions choose no profile either, if several exist and none is called default.
    whole.ask("UPDATE nearsim.profile SET name = 'first' WHERE name = 'default'")
    assert whole.ask("SELECT FROM nearsim.default_duplicates") == []


def test_the_only_profile_is_the_default_whatever_its_name(whole: World) -> None:
    duplicates = whole.ask("SELECT doc_id, copy_of FROM nearsim.duplicates ORDER BY doc_id")
    whole.ask("UPDATE nearsim.profile SET name = 'only'")
    assert whole.ask("SELECT doc_id, copy_of FROM nearsim.default_duplicates ORDER BY doc_id") == duplicates


def test_documents_outside_the_retention_window_say_so(database_url: str) -> None:
    with Index.connect(database_url) as index:
        documents = [Document(name, body=f"{name} some words", published_at=date) for name, date in _dated()]
        found = World.build(index, [*RULES, 'retain.age="30 days"'], documents)
        states = dict(found.ask("SELECT external_id, state FROM nearsim.documents"))
    assert states == {"old": "outside window", "new": "indexed", "undated": "indexed"}


def _dated() -> list[tuple[str, datetime | None]]:
    now = datetime.now(UTC)
    return [("old", now - timedelta(days=31)), ("new", now - timedelta(days=29)), ("undated", None)]


def test_profiles_show_recall_and_generation(whole: World) -> None:
    (row,) = rows(whole, "SELECT * FROM nearsim.profiles")
    assert row["expected_recall"] == whole.profile.expected_recall
    assert row["amplification"] == str(whole.profile.amplification)
    assert (row["bands"], row["rows"]) == (whole.profile.bands, whole.profile.rows)
    assert (row["state"], row["documents"]) == ("live", len(whole.doc_ids))
    assert row["fingerprint"] == whole.profile.fingerprint
    shown = whole.index.stats()
    for name in ("buckets", "largest_bucket", "buckets_over_limit", "links_left_out"):
        assert row[name] == shown[name]
    # As for generations that were made before it was written down.
    whole.ask("UPDATE nearsim.generation SET expected_recall = NULL")
    ((recall,),) = whole.ask("SELECT expected_recall FROM nearsim.profiles")
    assert recall == pytest.approx(whole.profile.expected_recall, abs=1e-9)


def test_generations_of_every_state_are_listed(whole: World) -> None:
    states = whole.ask(
        "SELECT profile, state, threshold FROM nearsim.generations LEFT JOIN nearsim.live_generations "
        "USING (generation_id, profile) ORDER BY generation_id"
    )
    assert states == [("default", "live", 0.5), ("default", "retired", None)]


def test_backlog_counts_work_and_changes(whole: World) -> None:
    assert rows(whole, "SELECT * FROM nearsim.backlog") == []
    whole.ask(
        "INSERT INTO nearsim.document (collection_id, external_id) SELECT collection_id, n "
        "FROM nearsim.collection, (VALUES ('a'), ('b')) AS new (n)"
    )
    whole.ask(
        "INSERT INTO nearsim.work (generation_id, stage, doc_id, doc_ids, due_at, lease_id, attempts, set_aside_at) "
        "SELECT generation_id, 'sign', doc_id, doc_ids, due_at, lease_id, attempts, set_aside_at "
        "FROM nearsim.generation, (VALUES (1, NULL, now(), NULL, 0, NULL), "
        "(2, NULL, now() + interval '1 day', NULL, 1, NULL), (-1, ARRAY[3], now(), 7, 0, NULL), "
        "(4, NULL, now(), NULL, 5, now())) AS queued (doc_id, doc_ids, due_at, lease_id, attempts, set_aside_at)"
    )
    found = whole.ask(
        "SELECT state, stage, waiting, due, leased, tried, set_aside FROM nearsim.backlog ORDER BY state NULLS FIRST"
    )
    assert found == [
        (None, "change", 2, 2, 0, 0, 0),
        ("live", "sign", 3, 1, 1, 1, 1),
        ("retired", "sign", 3, 1, 1, 1, 1),
    ]
