"""Incremental clusters: however they are joined and relinked, they equal those of a full link."""

import random
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from nearsim_db.errors import RecipeError
from nearsim_db.indexing.steps import rebuild_clusters
from nearsim_db.indexing.steps.ties import GenerationTies
from nearsim_db.store.clusters import clusters
from nearsim_db.store.clusters.clusters import Members, Ties
from nearsim_db.store.driver import Connection
from tests.builders.cluster_world import MAY, World
from tests.builders.selection import some_combinations


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the ties of a few documents read in several batches."""
    monkeypatch.setattr(clusters, "_ROWS_PER_FETCH", 7)


def happen(world: World, rng: random.Random, is_judged: bool) -> None:
    """Apply one random change to the documents, their pairs or the verdicts."""
    known, heads = sorted(world.numbers), sorted(set(world.heads.values()))
    kinds = ["add", "add", "twin", "twin", "empty", "pair", "pair", "remove", "edit", "renumber"]
    kind = rng.choice([*kinds, *["judge"] * (5 if is_judged else 0)])
    free = [one for one in range(1, 60) if one not in world.numbers]
    if len(heads) < 2:
        kind = "add"
    elif not free:
        kind = "remove"
    doc_id = rng.choice(free if kind in ("add", "twin", "empty") else known)
    if kind in ("add", "twin", "empty", "edit"):
        date = MAY + timedelta(days=rng.randrange(4))
        world.write(doc_id, rng.choice(["A", "B", "C", None]), date, rng.randrange(5))
    match kind:
        case "add":
            world.sign(doc_id, doc_id, rng.randrange(2))
        case "twin":
            world.sign(doc_id, rng.choice(heads), rng.randrange(2))
        case "empty":
            world.sign_featureless(doc_id)
        case "pair":
            drawn = {tuple(sorted(rng.sample(heads, 2))) for _ in range(rng.choice([1, 1, 3]))}
            world.pair({(left, right) for left, right in drawn} - world.pairs)
        case "remove":
            world.remove(doc_id)
        case "renumber":
            world.renumber(doc_id, rng.randrange(2))
        case "edit":
            world.queued.add(doc_id)
        case "judge":
            judge(world, rng)


def judge(world: World, rng: random.Random) -> None:
    """Pin, veto or undo a random pair; vetoes are mostly of pairs in one cluster."""
    standing = [pair for pair in world.verdicts if world.numbers.keys() >= {*pair}]
    if len(standing) > 12 or (standing and rng.random() < 0.3):
        world.judge("undo_verdict", *rng.choice(sorted(standing)))
        return
    stored = world.stored()
    cluster = rng.choice([*stored.values(), (0, False)])[0]
    together = sorted(one for one in stored if stored[one][0] == cluster and one in world.numbers)
    if len(together) > 1 and rng.random() < 0.8:
        left, right = sorted(rng.sample(together, 2))
        world.judge("veto_pair", left, right)
    else:
        left, right = sorted(rng.sample(sorted(world.numbers), 2))
        world.judge(rng.choice(["pin_pair", "pin_pair", "veto_pair"]), left, right)


@pytest.fixture
def open_connection(either_tables: None, connection: Connection) -> Iterator[Connection]:
    """A connection whose transaction ends before the database is dropped."""
    yield connection
    connection.rollback()


@some_combinations(
    (
        "keep",
        [
            *("earliest", "latest", "longest", "source:B,A", "highest:meta.score", "central", "none"),
            *('["has:meta.score", "source:B,A", "latest"]', '["source:C", "earliest", "longest"]'),
        ],
    ),
    (
        "linked",
        [(one, judged) for judged in (False, True) for one in ("connected", "representative", "average")],
    ),
    ("numbers_differ", ["link", "keep-apart"]),
)
def test_incremental_clusters_equal_a_full_link(
    open_connection: Connection, keep: str, linked: tuple[str, bool], numbers_differ: str
) -> None:
    """By each linkage, and where people pin and veto pairs meanwhile or not."""
    linkage, is_judged = linked
    rng = random.Random(f"{keep} {linkage} {numbers_differ} {is_judged}")
    settings = [
        f"cluster.keep={keep}",
        f"cluster.linkage={linkage}",
        f"cluster.numbers_differ={numbers_differ}",
        "match.threshold=0.4",  # below some averages of pairs and documents that are no pair
    ]
    if (keep, linkage) == ("central", "representative"):
        with pytest.raises(RecipeError, match="representatives are kept"):
            World(open_connection, settings)
        return
    world = World(open_connection, settings)
    for step in range(1, 151):
        happen(world, rng, is_judged)
        if rng.random() < 0.3 and world.queued:
            world.relink(rng.sample(sorted(world.queued), rng.randint(1, len(world.queued))))
        if step % (5 if is_judged else 25) == 0:
            while world.queued:
                world.relink(sorted(world.queued)[: rng.randint(1, 5)])
            assert world.stored() == world.expected()
            open_connection.commit()
            rebuild_clusters(open_connection, world.context)
            assert world.run("SELECT pg_current_xact_id_if_assigned()") == [(None,)], "link wrote"
    world.run("DELETE FROM {cluster_member}")
    rebuild_clusters(open_connection, world.context)
    assert world.stored() == world.expected() != {}


def test_a_rebuild_may_compute_for_an_hour_between_statements(
    open_connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, allowed = World(open_connection, []), list[object]()
    form = GenerationTies.clusters

    def recorded(ties: GenerationTies, found: Ties) -> Members:
        allowed.extend(world.run("SHOW idle_in_transaction_session_timeout"))
        return form(ties, found)

    monkeypatch.setattr(GenerationTies, "clusters", recorded)
    rebuild_clusters(open_connection, world.context)
    assert allowed == [("1h",)]


def rows_touched(world: World, action: Callable[[], object]) -> tuple[int, int]:
    """The numbers of rows of the generation that a call fetches by scans and writes."""
    before = _counted(world)
    action()
    read, written = _counted(world)
    return read - before[0], written - before[1]


def _counted(world: World) -> tuple[int, int]:
    """The server's counts for this session, which stay while a transaction is open."""
    ((read, written),) = world.run(
        "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read), sum(n_tup_ins + n_tup_upd + n_tup_del)"
        " FROM pg_stat_xact_user_tables WHERE relname = ANY(%s)",
        [
            world.context.leaves.name(parent)
            for parent in ("signature", "band", "similar_pair", "cluster_member")
        ],
    )
    return int(read), int(written)


@pytest.fixture
def large(open_connection: Connection) -> World:
    """A cluster of 20,000: 10,000 twins of document 1, and as many documents that are paired with it."""
    world = World(open_connection, [])
    world.run(
        "INSERT INTO nearsim.document (doc_id, collection_id, external_id, published_at)"
        " OVERRIDING SYSTEM VALUE SELECT n, %s, n, %s FROM generate_series(1, 20000) AS n",
        *(world.collection.collection_id, MAY),
    )
    world.run(
        "INSERT INTO {signature} (generation_id, doc_id, revision, feature_count, feature_digest, sketch,"
        " numbers_digest, head_id) SELECT {generation_id}, n, 1, 1, gen_random_uuid(), '', 0,"
        " CASE WHEN n > 10000 THEN n ELSE 1 END"
        " FROM generate_series(1, 20000) AS n"
    )
    world.run(
        "INSERT INTO {similar_pair}"
        " (generation_id, left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size)"
        " SELECT {generation_id}, 1, n, 1, 1, 1, 1, 1 FROM generate_series(10001, 20000) AS n"
    )
    rebuild_clusters(open_connection, world.context)
    assert set(world.stored().values()) == {(1, True), (1, False)}
    open_connection.commit()
    for parent in ("signature", "similar_pair", "cluster_member"):
        world.run(f"ANALYZE {{{parent}}}")
    open_connection.commit()
    return world


def test_a_new_twin_of_a_large_family_touches_few_rows(large: World) -> None:
    large.write(20_001, None, MAY, 1)
    large.sign(20_001, 1, 0)
    read, written = rows_touched(large, lambda: large.relink([20_001]))
    assert read <= 20 and written == 1
    assert large.stored()[20_001] == (1, False)


def test_a_new_pair_with_a_member_of_a_large_cluster_touches_few_rows(large: World) -> None:
    large.write(20_001, None, MAY, 1)
    large.sign(20_001, 20_001, 0)
    read, written = rows_touched(large, lambda: large.pair({(15_000, 20_001), (1, 20_001)}))
    assert read <= 40 and written == 3  # two pairs and a member
    assert large.stored()[20_001] == (1, False)


def test_removing_a_member_does_not_read_the_whole_cluster(large: World) -> None:
    """The rows of its members are read, but the pairs of a few only."""
    large.run("DELETE FROM {signature} WHERE doc_id = 15000")
    read, written = rows_touched(large, lambda: large.relink([15_000]))
    assert read <= 55_000 and written == 1
    assert 15_000 not in large.stored()


def test_cluster_id_is_the_smallest_document(open_connection: Connection) -> None:
    world = World(open_connection, ["cluster.keep=latest"])
    for doc_id in (2, 5, 7, 8, 9):
        world.write(doc_id, None, MAY + timedelta(days=doc_id % 5), 1)
        world.sign(doc_id, doc_id, 0)
    world.pair({(7, 8)})
    world.pair({(5, 9)})
    assert world.stored() == {7: (7, False), 8: (7, True), 5: (5, False), 9: (5, True)}
    world.pair({(8, 9)})
    assert world.stored() == {7: (5, False), 8: (5, False), 5: (5, False), 9: (5, True)}
    world.pair({(2, 7)})
    assert world.stored() == world.expected()
    assert {cluster for cluster, _ in world.stored().values()} == {2}
