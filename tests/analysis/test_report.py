"""The data of a report against brute force in Python."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import median

import pytest

from nearsim_db import Document, Index
from nearsim_db.analysis.report import Options, gather, render
from nearsim_db.errors import DatabaseError
from nearsim_db.records import CollectionId
from nearsim_db.similarity.recipe import from_mapping
from nearsim_db.store.clusters import reports
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.store.generations.tables import GenerationTables
from tests.builders.followed_table import words
from tests.builders.sql_world import EMPTY, RULES, THRESHOLD, World, write_documents
from tests.search.test_passages import DOCUMENTS
from tests.servers.databases import Server

SOURCES = ["Wire", "Courier", None, "Éclair"]
LAST = "\uffff"  # no source comes after all others
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
Pairs = dict[tuple[int, int], float]


def dated(documents: list[Document]) -> list[Document]:
    """Documents with sources and dates, some without; some at the same moment."""
    return [
        replace(
            one,
            source=SOURCES[number * 7 % 4],
            published_at=None if number % 9 == 0 else BEGIN + timedelta(hours=number * 13 % 17),
        )
        for number, one in enumerate(documents)
    ]


@pytest.fixture(scope="module")
def world(server: Server) -> Iterator[World]:
    """A collection that no test changes."""
    with server.database() as url, Index.connect(url) as index:
        yield World.build(index, RULES, dated(write_documents(3)))


@pytest.fixture
def own(database_url: str) -> Iterator[World]:
    """A collection that the test may change."""
    with Index.connect(database_url) as index:
        yield World.build(index, RULES, dated(write_documents(3)))


@pytest.fixture
def leaves(world: World) -> Leaves:
    return leaves_of(world)


def leaves_of(world: World) -> Leaves:
    (row,) = world.ask("SELECT generation_id, distributed FROM nearsim.generation WHERE state = 'live'")
    return Leaves(*row)


@pytest.fixture
def reading(world: World) -> Iterator[Connection]:
    with reports.snapshot(world.index.database.engine) as connection:
        yield connection


def heads(world: World) -> dict[int, int]:
    """The head of every document: the first of the same features."""
    first: dict[frozenset[int], int] = {}
    return {
        one: first.setdefault(frozenset(world.features[one]), one)
        for one in world.doc_ids
        if world.features[one]
    }


def stored(world: World) -> Pairs:
    """The pairs of heads, by brute force."""
    those = sorted(set(heads(world).values()))
    return {(a, b): world.similarity(a, b) for a in those for b in those if a < b and world.is_pair(a, b)}


def facts_of(world: World) -> dict[str, dict[str, object]]:
    """Source and date of every document."""
    return {
        one.external_id: {"source": one.source, "at": one.published_at} for one in dated(write_documents(3))
    }


def test_similarities_are_counted_in_bins(world: World, leaves: Leaves, reading: Connection) -> None:
    counts = GenerationTables(reading, leaves).report.count_similarities(THRESHOLD, 10)
    expected = Counter(
        (min(int((similarity - THRESHOLD) / 0.05 + 1e-9), 9), world.numbers(a) != world.numbers(b))
        for (a, b), similarity in stored(world).items()
    )
    assert sum(expected.values()) > 20
    assert counts.tolist() == [[expected[step, False], expected[step, True]] for step in range(10)]


def test_facts_of_suspicious_clusters(world: World, leaves: Leaves, reading: Connection) -> None:
    pairs, head, given = stored(world), heads(world), facts_of(world)
    found = {one.cluster_id: one for one in GenerationTables(reading, leaves).report.stream_cluster_facts()}
    members: dict[int, list[int]] = {}
    survivors = {}
    for cluster_id, doc_id, survives in world.ask(
        "SELECT cluster_id, doc_id, is_survivor FROM nearsim.cluster_member WHERE generation_id = %s",
        leaves.generation_id,
    ):
        members.setdefault(cluster_id, []).append(doc_id)
        if survives:
            survivors[cluster_id] = doc_id
    assert found.keys() == members.keys() and len(found) > 3
    for cluster_id, doc_ids in members.items():
        survivor = survivors[cluster_id]
        ends = [sorted((head[one], head[survivor])) for one in doc_ids if one != survivor]
        alike = [1.0 if a == b else pairs.get((a, b)) for a, b in ends]
        met = [one for one in alike if one is not None]
        dates = [at for one in doc_ids if isinstance(at := given[world.names[one]]["at"], datetime)]
        facts = found[cluster_id]
        assert (facts.survivor_id, facts.members, facts.chained) == (
            survivor,
            len(doc_ids),
            len(alike) - len(met),
        )
        assert facts.mean == (pytest.approx(sum(met) / len(met)) if met else None)
        assert facts.least == (min(met) if met else None)
        assert facts.renumbered == sum(world.numbers(one) != world.numbers(survivor) for one in doc_ids)
        assert facts.sources == len({given[world.names[one]]["source"] for one in doc_ids} - {None})
        assert facts.span_seconds == ((max(dates) - min(dates)).total_seconds() if dates else None)
        listed = GenerationTables(reading, leaves).report.read_cluster_details([cluster_id], 4)[cluster_id]
        assert len(listed) == min(4, len(doc_ids))
        assert listed[0].survives and listed[0].external_id == world.names[survivor]
        order = [-1.0 if one.similarity is None else one.similarity for one in listed[1:]]
        assert order == sorted([-1.0 if one is None else one for one in alike])[:3]


def test_pairs_to_review(world: World, leaves: Leaves, reading: Connection) -> None:
    pairs = stored(world)
    lowest = GenerationTables(reading, leaves).report.read_lowest_pairs(5)
    assert [(one.left_id, one.right_id) for one in lowest] == sorted(pairs, key=lambda p: (pairs[p], p))[:5]
    assert [(one.intersection, one.union) for one in lowest] == [
        world.sizes(one.left_id, one.right_id) for one in lowest
    ]
    other = [pair for pair in pairs if world.numbers(pair[0]) != world.numbers(pair[1])]
    renumbered = GenerationTables(reading, leaves).report.read_renumbered_pairs(5)
    assert [(one.left_id, one.right_id) for one in renumbered] == sorted(other, key=lambda p: (-pairs[p], p))[
        :5
    ]
    spread = GenerationTables(reading, leaves).report.read_spread_pairs(THRESHOLD, 5)
    steps = {min(int((similarity - THRESHOLD) / 0.1 + 1e-9), 4) for similarity in pairs.values()}
    assert [min(int((one.similarity - THRESHOLD) / 0.1 + 1e-9), 4) for one in spread] == sorted(steps)
    for one in (*lowest, *renumbered, *spread):
        assert pairs[one.left_id, one.right_id] == one.similarity
        assert one.numbers_differ == (world.numbers(one.left_id) != world.numbers(one.right_id))


def test_first_publications_by_source(world: World, leaves: Leaves, reading: Connection) -> None:
    given = facts_of(world)
    ties = [*stored(world), *((head, one) for one, head in heads(world).items() if head != one)]
    expected: dict[tuple[str, str], list[float | None]] = {}
    for a, b in ties:
        left, right = given[world.names[a]], given[world.names[b]]
        if str(right["source"] or LAST) < str(left["source"] or LAST):
            left, right = right, left
        delay = None
        if isinstance(right["at"], datetime) and isinstance(left["at"], datetime):
            delay = (right["at"] - left["at"]).total_seconds()
            delay = abs(delay) if left["source"] == right["source"] else delay
        expected.setdefault((str(left["source"]), str(right["source"])), []).append(delay)
    found, combinations = GenerationTables(reading, leaves).report.count_copies(100)
    assert combinations == len(found) == len(expected) > 5
    for row in found:
        delays = expected[str(row.one), str(row.other)]
        first = [one for one in delays if one is not None and one > 0]
        second = [-one for one in delays if one is not None and one < 0]
        assert (row.pairs, row.one_first, row.other_first, row.at_once) == (
            len(delays),
            len(first),
            len(second),
            delays.count(0),
        )
        assert row.one_delay_seconds == (median(first) if first else None)
        assert row.other_delay_seconds == (median(second) if second else None)
    assert [row.pairs for row in found] == sorted((row.pairs for row in found), reverse=True)


def test_copies_over_time_by_first_publication(world: World, leaves: Leaves, reading: Connection) -> None:
    given = facts_of(world)
    ((collection_id,),) = world.ask("SELECT collection_id FROM nearsim.collection")
    dated = {name: at for name, one in given.items() if isinstance(at := one["at"], datetime)}
    first, last = min(dated.values()), max(dated.values())

    def step_of(at: datetime, first: datetime = first, last: datetime = last) -> int:
        return min(int(10 * ((at - first) / max(last - first, timedelta(seconds=1))) + 1e-9), 9)

    members: dict[int, list[int]] = {}
    for cluster_id, doc_id in world.ask("SELECT cluster_id, doc_id FROM nearsim.cluster_member"):
        members.setdefault(cluster_id, []).append(doc_id)
    copies: Counter[int] = Counter()
    delays: dict[tuple[object, object], list[float]] = {}
    for cluster_id, doc_ids in members.items():
        story = sorted(
            (dated[world.names[one]], one, given[world.names[one]]["source"])
            for one in doc_ids
            if world.names[one] in dated
        )
        for at, _, source in story[1:]:
            copies[step_of(at)] += 1
            delays.setdefault((story[0][2], source), []).append((at - story[0][0]).total_seconds())
        timelines = GenerationTables(reading, leaves).report.read_timelines([cluster_id], 10)
        counts = Counter(step_of(at, story[0][0], story[-1][0]) for at, *_ in story)
        assert [one.steps for one in timelines.values()] == (
            [tuple(counts[step] for step in range(10))] if story else []
        )
    found = GenerationTables(reading, leaves).report.count_over_time(collection_id, 10, 100)
    assert found is not None and found.steps[0].begin == f"{first:%Y-%m-%d %H:%M}"
    documents = Counter(map(step_of, dated.values()))
    assert [(one.documents, one.copies) for one in found.steps] == [
        (documents[step], copies[step]) for step in range(10)
    ]
    assert found.all_origins == len(found.origins) == len(delays) > 5
    assert [sum(column) for column in zip(*(one.steps for one in found.origins), strict=True)] == [
        copies[step] for step in range(10)
    ]
    for one in found.origins:
        expected = delays[one.first_source, one.source]
        assert (one.documents, one.delay_seconds) == (len(expected), median(expected))


def test_sources_corpus_and_documents_without_features(
    world: World, leaves: Leaves, reading: Connection
) -> None:
    given = facts_of(world)
    ((collection_id,),) = world.ask("SELECT collection_id FROM nearsim.collection")
    found, sources = GenerationTables(reading, leaves).report.count_sources(collection_id, 3)
    documents = Counter(one["source"] for one in given.values())
    assert sources == 3 and len(found) == 3
    assert all(one.documents == documents[one.source] for one in found)
    every, _ = GenerationTables(reading, leaves).report.count_sources(collection_id, 9)
    clusters = len(list(GenerationTables(reading, leaves).report.stream_cluster_facts()))
    assert sum(one.survivors for one in every) == sum(one.first for one in every) == clusters
    corpus = reports.count_corpus(reading, collection_id)
    assert (corpus.documents, corpus.sources) == (len(given), 3)
    assert corpus.with_date == sum(one["at"] is not None for one in given.values())
    assert corpus.first_date == "2024-01-01 00:00"
    (empty,) = GenerationTables(reading, leaves).report.read_featureless(5)
    assert (empty.external_id, empty.characters) == (EMPTY, len(" ?! "))


def test_buckets_are_counted_and_the_largest_named(world: World, leaves: Leaves, reading: Connection) -> None:
    rows = world.ask("SELECT bucket_hash FROM nearsim.band WHERE generation_id = %s", leaves.generation_id)
    sizes = sorted((size for size in Counter(rows).values() if size > 1), reverse=True)
    largest, (shared, over_limit, left_out) = GenerationTables(reading, leaves).report.read_large_buckets(
        3, 6, 2
    )
    assert [one.members for one in largest] == sizes[:6]
    assert shared == len(sizes)
    assert over_limit == sum(size > 3 for size in sizes)
    assert left_out == sum((size - 3) * (size - 4) // 2 for size in sizes if size > 3) > 0
    assert all(len(one.names) == 2 for one in largest)


def test_purged_texts_are_missing_and_changed_ones_marked_stale(own: World) -> None:
    (pair, *_) = stored(own)
    purged, changed = pair
    own.index.purge([own.names[purged]])
    own.ask("UPDATE nearsim.document SET body = 'all new' WHERE doc_id = %s", changed)
    with reports.snapshot(own.index.database.engine) as connection:
        texts = GenerationTables(connection, leaves_of(own)).report.read_texts(
            CollectionId(1), [purged, changed], 3
        )
    assert list(texts) == [changed]
    assert (texts[changed].body, texts[changed].characters, texts[changed].stale) == ("all", 7, True)


@pytest.mark.slow("several builds")
def test_judged_pairs_are_marked_and_come_last(own: World) -> None:
    before = gather(own.index.database, "default", None, Options(diffs=4)).index
    assert before is not None and {one.verdict for one in before.comparisons} == {None}
    judged = before.comparisons[0].left.external_id, before.comparisons[0].right.external_id
    own.ask("SELECT nearsim.veto_pair(%s, %s, 'other figures')", *judged)
    after = gather(own.index.database, "default", None, Options(diffs=200)).index
    assert after is not None and len(after.comparisons) > 4
    assert [one.verdict for one in after.comparisons if one.verdict is not None] == ["vetoed"]
    last = after.comparisons[-1]
    assert (last.left.external_id, last.right.external_id) == judged


def test_whole_report_with_dates_outside_the_range_of_python(own: World) -> None:
    own.ask("UPDATE nearsim.document SET published_at = 'infinity' WHERE doc_id %% 3 = 0")
    own.ask("UPDATE nearsim.document SET published_at = '12024-05-06' WHERE doc_id %% 3 = 1")
    found = gather(own.index.database, "default", None, Options(top=3, diffs=7))
    assert found.corpus.last_date == "12024-05-06 00:00"
    index = found.index
    assert index is not None and found.stats is not None
    assert index.similarities.pairs == found.stats["stored_pairs"] == len(stored(own))
    assert index.clusters.clusters == found.stats["clusters"]
    assert index.clusters.documents == found.stats["clustered_documents"]
    assert len(index.clusters.largest) == len(index.sources) == len(index.copies) == 3
    assert {one.why for one in index.comparisons} == {"numbers differ", "least similar", "sample"}
    assert len({(one.left.external_id, one.right.external_id) for one in index.comparisons}) == 7


@pytest.mark.slow("several builds")
def test_texts_of_an_attached_table_are_read_from_the_table(story: Index, database: Database) -> None:
    found = gather(database, story.collection, None, Options())
    assert found.index is not None and found.index.comparisons
    for one in found.index.comparisons:
        assert one.left.has_text and one.right.has_text
        shown = "".join(piece.text for hunk in one.diff.hunks for piece in hunk.left)
        assert words(int(one.left.external_id) % 2, int(one.left.external_id)) in shown


def test_a_snapshot_writes_nothing(engine: Engine) -> None:
    with pytest.raises(DatabaseError, match="read-only"), reports.snapshot(engine) as connection:
        connection.execute("DELETE FROM nearsim.document")


def test_a_report_shows_the_passages_of_its_pairs(index: Index) -> None:
    index.create_profile("default", from_mapping({"sketch": {"family": "winnow"}}))
    index.add(DOCUMENTS)
    report = gather(index.database, index.collection, None, Options())
    assert report.index is not None and report.index.comparisons
    for one in report.index.comparisons:
        found = index.passages(one.left.external_id, one.right.external_id)
        assert [(each.equal, each.share) for each in one.passages] == [
            (each.equal, each.share) for each in found
        ]
        assert f"passage 1: {found[0].equal} equal words" in render(report).decode()
