"""Any interleaving of writers and workers, statement by statement and with crashes, ends like a serial run."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import networkx as nx
import psycopg
import pytest
from psycopg import sql

from nearsim_db.indexing import steps
from nearsim_db.indexing.queue import runner, stages
from nearsim_db.store.documents import documents
from nearsim_db.store.driver.codec import to_bigint
from nearsim_db.store.work.queue import STAGES
from tests.builders.interleaving import Actor, Schedule
from tests.builders.living_world import THRESHOLD, World
from tests.builders.selection import some

Pair = tuple[int, int]

SEEDS = range(4)

WORLDS = {
    "no limit": ["match.bucket_limit=0", "bands.count=8", "bands.rows=1", "shingle.k=1"],
    "limit 1": ["match.bucket_limit=1", "bands.count=4", "bands.rows=1", "shingle.k=1"],
    "one band": ["match.bucket_limit=1", "bands.count=1", "bands.rows=1", "shingle.k=1"],
    "limit 2": [
        "match.bucket_limit=2",
        "bands.count=4",
        "bands.rows=2",
        "shingle.k=1",
        "cluster.keep=latest",
    ],
    "stars": ["match.bucket_limit=3", "bands.count=8", "bands.rows=1", "cluster.linkage=representative"],
    "numbers": ["match.bucket_limit=2", "bands.count=2", "bands.rows=1", "cluster.numbers_differ=keep-apart"],
    "shingles": ["match.bucket_limit=8", "bands.count=8", "bands.rows=1", "shingle.k=2"],
}


def shingles(text: str, k: int) -> frozenset[str]:
    """Windows of k words of two letters or more, or the whole text when it is shorter."""
    words = [word for word in text.split() if len(word) > 1]
    windows = range(max(1, len(words) - k + 1)) if words else ()
    return frozenset(" ".join(words[at : at + k]) for at in windows)


class Truth:
    """The expected index of its documents, in plain Python (except for the bucket hashes)."""

    def __init__(self, world: World) -> None:
        rows = world.run(("SELECT doc_id, revision, body FROM nearsim.document ORDER BY doc_id", ()))
        recipe, encoder = world.profile.recipe, world.context().encoder
        self.revisions = {doc_id: revision for doc_id, revision, _ in rows}
        features = {doc_id: shingles(body, recipe.shingle.k) for doc_id, _, body in rows}
        first: dict[frozenset[str], int] = {}
        self.heads = {
            one: first.setdefault(features[one], one) if features[one] else None for one in features
        }
        heads = sorted(first[found] for found in first if found)
        sketches = encoder.encode([body for doc_id, _, body in rows if doc_id in heads]).sketches
        keys = to_bigint(encoder.matrix_keys(sketches)).tolist()
        self.bands = sorted((key, head) for head, row in zip(heads, keys, strict=True) for key in row)
        self.pairs: dict[Pair, Pair] = {}
        for a, b in combinations(heads, 2):
            common, union = len(features[a] & features[b]), len(features[a] | features[b])
            if common >= THRESHOLD * union:
                self.pairs[a, b] = common, union
        limit, buckets = recipe.match.bucket_limit, defaultdict(list)
        for key, head in self.bands:
            buckets[key].append(head)
        linked = {
            pair
            for members in buckets.values()
            for place, anchor in enumerate(members)
            for pair in ((anchor, other) for other in members[place + 1 :])
            if not limit or place < limit
        }
        self.least = {pair: self.pairs[pair] for pair in linked & self.pairs.keys()}
        self.is_whole = not limit or all(len(members) <= limit for members in buckets.values())


def check(world: World) -> None:
    """The index is what a fresh build of the documents would be, or has more true pairs."""
    truth = Truth(world)
    signed = world.run(("SELECT doc_id, revision, head_id FROM {signature}", ()))
    assert {doc_id: revision for doc_id, revision, _ in signed} == truth.revisions
    assert {doc_id: head for doc_id, _, head in signed} == truth.heads
    assert sorted(world.run(("SELECT bucket_hash, doc_id FROM {band}", ()))) == truth.bands
    stored = {
        (left, right): (common, union)
        for left, right, common, union in world.run(
            ("SELECT left_id, right_id, intersection_size, union_size FROM {similar_pair}", ())
        )
    }
    assert truth.least.items() <= stored.items() <= truth.pairs.items()
    if truth.is_whole:
        assert stored == truth.least
    check_clusters(
        world, [*stored, *((head, one) for one, head in truth.heads.items() if head not in (None, one))]
    )
    left = (
        "SELECT 'work', doc_id FROM nearsim.work UNION ALL SELECT 'change', doc_id FROM nearsim.change"
        " UNION ALL SELECT 'lease', lease_id FROM nearsim_index.lease"
    )
    assert world.run((left, ())) == []


def check_clusters(world: World, ties: list[Pair] | None) -> None:
    """Clusters are those that linking all pairs anew gives, and, where any tie counts, the components of `ties`."""
    members = "SELECT doc_id, cluster_id, is_survivor FROM {cluster_member} ORDER BY doc_id"
    kept = world.run((members, ()))
    with world.engine.connect() as connection:
        steps.rebuild_clusters(connection, world.context())
        connection.commit()
    assert kept == world.run((members, ()))
    rules = world.profile.recipe.cluster
    if ties is not None and rules.linkage == "connected" and rules.numbers_differ == "link":
        by_cluster = defaultdict(set)
        for doc_id, cluster_id, _ in kept:
            by_cluster[cluster_id].add(doc_id)
        components = nx.connected_components(nx.Graph(ties))
        assert by_cluster == {min(component): component for component in components}


def play(
    world: World, monitor: psycopg.Connection[tuple[Any, ...]], seed: int, check: Callable[[World], None]
) -> None:
    """One history: two writers and two or three concurrent workers, then one worker for what remains."""
    rng = random.Random(seed)
    world.clear()
    warned = len(world.index.warnings)
    numbers = iter(range(1, 1000))
    schedule = Schedule(rng, monitor, rng.choice([0.0, 0.0, 0.004, 0.02]))

    def worker(killed: Actor | None = None) -> Actor | None:
        if killed is not None and (schedule.crashes > 3 or killed.name.startswith("writer")):
            return None
        return Actor(f"worker {next(numbers)}", world.worker(rng.random().hex(), rng.randrange(6, 18)))

    writers = [
        Actor(f"writer {number}", world.writer(rng.random().hex(), rng.randrange(4, 14))) for number in (1, 2)
    ]
    workers = [worker() for _ in range(rng.choice([2, 2, 3]))]
    try:
        schedule.run([*writers, *filter(None, workers)], worker)
        world.drain()
        assert world.index.warnings[warned:] == []
        check(world)
    except BaseException as error:
        error.add_note(f"seed {seed}, after these steps:\n{schedule.listing()}")
        raise


@pytest.fixture
def monitor(database_url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """An administrator's connection; deadlocks are resolved at once from here on."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        database = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET deadlock_timeout = '5ms'").format(database))
        yield connection


@pytest.mark.parametrize("seed", some(SEEDS, "every seed"))
@pytest.mark.parametrize("settings", some(list(WORLDS.values()), "every world", kept=3))
def test_random_interleavings_equal_a_serial_run(
    database_url: str,
    monitor: psycopg.Connection[tuple[Any, ...]],
    major: int,
    seed: int,
    settings: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = 100 * major + seed
    rng = random.Random(f"batches {history}")
    monkeypatch.setattr(runner, "_BATCH_DOCUMENTS", {stage: rng.choice([1, 2, 3]) for stage in STAGES})
    monkeypatch.setattr(stages, "_MEMBERS_PER_BATCH", rng.choice([1, 2, 100]))
    monkeypatch.setattr(stages, "_CANDIDATES_PER_BATCH", rng.choice([1, 100]))
    world = World(database_url, settings)
    with world.index:
        play(world, monitor, history, check)


def test_twins_signed_concurrently_are_linked_despite_full_buckets(database_url: str) -> None:
    """Neither is an anchor, so neither is a candidate of the other."""
    world = World(database_url, WORLDS["one band"])
    with world.index:
        anchor = "aa bb cc dd ee ff"
        twin = next(
            text for text in (f"{anchor} w{n}" for n in range(100)) if in_one_bucket(world, anchor, text)
        )
        insert = "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (%s, %s, %s)"
        world.run((insert, (world.generation.collection_id, "anchor", anchor)))
        world.drain()
        world.run(*((insert, (world.generation.collection_id, name, twin)) for name in ("a", "b")))
        doc_ids = [doc_id for (doc_id,) in world.run(("SELECT doc_id FROM nearsim.change ORDER BY 1", ()))]
        context = world.context()
        with world.engine.connect() as one, world.engine.connect() as other:
            for connection, doc_id in ((one, doc_ids[0]), (other, doc_ids[1])):
                (batch,) = documents.stream_documents(connection, world.generation.collection_id, [doc_id])
                steps.store_signatures(connection, context, [doc_id], steps.sign_documents(context, batch))
            one.commit()
            other.commit()
        world.drain()
        check(world)


def in_one_bucket(world: World, left: str, right: str) -> bool:
    """Whether two texts share a bucket."""
    encoder = world.context().encoder
    keys = encoder.matrix_keys(encoder.encode([left, right]).sketches)
    return bool((keys[0] == keys[1]).any())
