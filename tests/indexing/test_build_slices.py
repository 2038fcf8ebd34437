"""Builds in slices: the same result whatever was signed before, and however many processes take part."""

import random
from collections.abc import Sequence

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.errors import BuildStoppedError
from nearsim_db.indexing import build, build_plan, slice_taker, steps
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.records import silent
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.documents import documents
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import run
from nearsim_db.store.generations import generation_rows, partitions
from nearsim_db.store.work.build_slices import SlicedStage
from tests.builders.interleaving import Actor, Schedule, step_through
from tests.builders.reindex_world import (
    LOWER,
    RECIPE,
    coming,
    jaccard_pairs,
    opened,
    pairs_of,
    stories,
    texts_of,
)
from tests.builders.reindex_world import fill as fill_and_build
from tests.builders.relations import leaves_of
from tests.builders.selection import some, some_combinations
from tests.builders.workers import ask
from tests.servers.databases import Server

COUNT = 40


def fill(url: str, recipe: list[str] = RECIPE) -> None:
    """Documents of a collection with a profile that is not built, one of them twice."""
    with Index.connect(url) as index:
        index.create_profile("default", override(Recipe(), recipe))
    rows = [(one.external_id, one.body) for one in stories(COUNT - 1)]
    rows.append(("copy", rows[5][1]))
    with psycopg.connect(url) as connection:
        connection.cursor().executemany(
            "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, %s, %s)", rows
        )


def context_of(index: Index) -> Context:
    """The context of the newest generation."""
    with index.database.transaction() as connection:
        generation = generation_rows.list_generations(connection)[-1]
    return index._contexts.make(generation)


def sign(connection: Connection, context: Context, doc_ids: Sequence[int]) -> None:
    """Sign some documents before the build."""
    context.tables(connection).create()
    for batch in documents.stream_documents(connection, context.collection_id, doc_ids):
        rows = steps.sign_documents(context, batch)
        context.tables(connection).signatures.write(rows, rows.doc_ids)


def test_a_resumed_build_does_not_lock_tables_that_helpers_read(own_tables: None, database_url: str) -> None:
    fill(database_url)
    with Index.connect(database_url) as index:
        context, engine = context_of(index), index.database.engine
        with engine.connect() as helper, engine.connect() as leader:
            build_plan.plan_signing(leader, context)
            context.tables(helper).signatures.count_heads()
            leader.execute("SET lock_timeout = '1s'")
            build_plan.plan_signing(leader, context)


def test_a_taker_may_compute_for_minutes_between_statements(database_url: str) -> None:
    fill(database_url)
    with Index.connect(database_url) as index:
        context, engine = context_of(index), index.database.engine
        allowed: list[object] = []
        with engine.connect() as reading, engine.connect() as writing:
            build_plan.plan_signing(writing, context)
            shown = "SHOW idle_in_transaction_session_timeout"
            taker = slice_taker.Taker(
                reading, writing, context, lambda: allowed.append(run(writing, shown).value())
            )
            while taker.take("sign"):
                pass
    assert set(allowed) == {"5min"}


def rows_of(url: str, generation_id: int) -> dict[str, list[tuple[object, ...]]]:
    """Everything that a build stores, but for when it was verified."""
    columns = {
        "signature": "doc_id, feature_count, feature_digest, sketch, numbers_digest, head_id",
        "band": "bucket_hash, doc_id",
        "similar_pair": "left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size",
        "cluster_member": "doc_id, cluster_id, is_survivor",
    }
    with psycopg.connect(url) as connection:
        return {
            table: connection.execute(
                sql.SQL("SELECT {} FROM nearsim.{} WHERE generation_id = %s ORDER BY 1, 2").format(
                    sql.SQL(names), sql.Identifier(table)
                ),
                [generation_id],
            ).fetchall()
            for table, names in columns.items()
        }


FIGURES = """
SELECT figures - ARRAY['began', 'seconds', 'done', 'total', 'buckets_counted_at'] FROM nearsim.generation
WHERE generation_id = %s
"""


def figures_of(url: str, generation_id: int) -> dict[str, object]:
    """What a build counted."""
    with psycopg.connect(url) as connection:
        return dict(ask(connection, FIGURES, generation_id))


def assert_built_alike(url: str, steps: str = "") -> None:
    """The newer of two generations has the rows and the counts of the other."""
    first, second = (one.generation_id for one in leaves_of(url))
    assert rows_of(url, second) == rows_of(url, first), steps
    assert figures_of(url, second) == figures_of(url, first)


def add_profile(url: str, name: str) -> None:
    """A profile with the recipe of the first, not built."""
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO nearsim.profile (collection_id, name) VALUES (1, %s)", [name])
        connection.execute(
            "INSERT INTO nearsim.generation "
            "(generation_id, profile_id, recipe, fingerprint, bands, rows, expected_recall) "
            "OVERRIDING SYSTEM VALUE "
            "SELECT nextval(CAST(%s AS regclass)), (SELECT max(profile_id) FROM nearsim.profile), "
            "recipe, fingerprint, bands, rows, expected_recall FROM nearsim.generation ORDER BY created_at LIMIT 1",
            [
                "nearsim.generation_generation_id_seq"
                if partitions.MAX_SHARED_DOCUMENTS > 0
                else "nearsim.own_generation"
            ],
        )


def small_slices(monkeypatch: pytest.MonkeyPatch, documents_each: int, rows_each: int) -> None:
    """Divide a small collection into many slices."""
    monkeypatch.setattr(build_plan, "_DOCUMENTS_PER_SLICE", documents_each)
    monkeypatch.setattr(build_plan, "_MIN_BAND_ROWS_PER_SLICE", rows_each)
    monkeypatch.setattr(build_plan, "_MAX_BAND_ROWS_PER_SLICE", rows_each)
    monkeypatch.setattr(slice_taker, "_CANDIDATES_PER_BATCH", 50)


RECIPES = {
    "fast_similarity": [*RECIPE, "match.threshold=0.3", "match.bucket_limit=2"],
    "bottom_k": ["shingle.k=1", "match.threshold=0.3", "sketch.family=bottom_k", "match.bucket_limit=2"],
}


@pytest.mark.usefixtures("either_tables")
@some_combinations(("recipe", list(RECIPES.values())), ("megabytes", ["256", "0"]))
def test_any_number_of_slices_gives_the_same_index(
    database_url: str, recipe: list[str], megabytes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database_url, [*recipe, "sketch.k=128"])
    monkeypatch.setenv("NEARSIM_BUILD_MEMORY", megabytes)
    with Index.connect(database_url) as index:
        build.build(index.database.engine, context_of(index), silent)
        add_profile(database_url, "sliced")
        small_slices(monkeypatch, 7, 300)
        build.build(index.database.engine, context_of(index), silent)
    assert_built_alike(database_url)
    first, _ = (one.generation_id for one in leaves_of(database_url))
    assert len(rows_of(database_url, first)["similar_pair"]) > 25
    assert int(str(figures_of(database_url, first)["buckets_over_limit"])) > 10


@some_combinations(("recipe", list(RECIPES.values())), ("megabytes", ["256", "0"]))
def test_one_transaction_gives_the_same_index(
    database_url: str, recipe: list[str], megabytes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database_url, [*recipe, "sketch.k=128"])
    monkeypatch.setenv("NEARSIM_BUILD_MEMORY", megabytes)
    with Index.connect(database_url) as index:
        assert not fits_one_transaction(index)
        build.build(index.database.engine, context_of(index), silent)
        add_profile(database_url, "together")
        monkeypatch.setattr(build, "MAX_SMALL_BUILD_DOCUMENTS", COUNT)
        assert fits_one_transaction(index)
        build.build(index.database.engine, context_of(index), silent)
    assert_built_alike(database_url)


def fits_one_transaction(index: Index) -> bool:
    """Whether the collection's new index is built in one transaction."""
    with index.database.engine.connect() as connection:
        return build.fits_one_transaction(connection, context_of(index))


def test_a_paused_build_is_not_done_in_one_transaction(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), RECIPE))
        with psycopg.connect(database_url) as connection:
            connection.execute(
                "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, 'a', 'some words')"
            )
            context = context_of(index)
            connection.execute("UPDATE nearsim.generation SET state = 'paused'")
            connection.commit()
        with pytest.raises(BuildStoppedError):
            build.build(index.database.engine, context, silent)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # cursors of killed sessions
@pytest.mark.usefixtures("either_tables")
@pytest.mark.parametrize("takers", some([3, 1, 2], "every number of processes"))
@pytest.mark.parametrize("seed", some(range(6), "every seed"))
def test_any_takers_in_any_interleaving_give_the_same_index(
    database_url: str, takers: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process leads, the others join; any of them may be killed, and is followed by another."""
    fill(database_url, RECIPES["fast_similarity"])
    with Index.connect(database_url) as index:
        build.build(index.database.engine, context_of(index), silent)
        add_profile(database_url, "interleaved")
        small_slices(monkeypatch, 15, 1500)
        monkeypatch.setattr(build, "_POLL_SECONDS", 0.0)
        schedule = run_takers(index, database_url, takers, random.Random(f"takers {takers} {seed}"))
    assert_built_alike(database_url, schedule.listing())


def run_takers(index: Index, url: str, takers: int, rng: random.Random) -> Schedule:
    """Build the newest generation by one that leads and others that join, interleaved, some of them killed."""
    engine, contexts = open_engine(url), iter([context_of(index) for _ in range(50)])
    step_through(engine)

    def lead() -> None:
        build.build(engine, next(contexts), silent)

    def help_along() -> None:
        context = next(contexts)
        while True:
            with engine.connect() as connection:
                known = generation_rows.reread(connection, context.generation)
            if known.state != "building" or known.stage not in ("sign", "pairs"):
                return
            build.join(engine, context, lambda: None)

    actions = {"leader": lead} | {f"helper {number}": help_along for number in range(1, takers)}

    def successor(actor: Actor) -> Actor:
        return Actor(actor.name, actor.action)

    with psycopg.connect(url, autocommit=True) as monitor:
        schedule = Schedule(rng, monitor, share_of_crashes=0.01)
        try:
            schedule.run([Actor(name, action) for name, action in actions.items()], successor)
        except BaseException as error:
            error.add_note(schedule.listing())
            raise
    return schedule


@pytest.mark.usefixtures("either_tables")
@some_combinations(("how", ["pause", "abandon"]), ("step", ["sign", "candidates"]))
def test_pausing_and_abandoning_stop_all_that_take_part(
    server: Server, how: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_slices(monkeypatch, 7, 500)
    with server.database(fill_and_build) as url, opened(url) as (database, reindex):

        def progress(now: str, done: int, total: int | None) -> None:
            if now == step and done and coming(database).state == "building":
                getattr(reindex, how)()

        with pytest.raises(BuildStoppedError):
            Reindex(database, "default", progress=progress).start(settings=LOWER)
        stopped = coming(database)
        stage: SlicedStage = "sign" if step == "sign" else "pairs"
        with (
            ContextFactory.open(database.settings, lambda message: None) as contexts,
            pytest.raises(BuildStoppedError),
        ):
            build.join(database.engine, contexts.make(stopped), lambda: None)
        with database.transaction() as connection:
            known = stopped.tables(connection).slices.read_progress(stage)
        assert (stopped.stage, 0 < known.unfinished < known.slices) == (stage, True)
        if how == "pause":
            reindex.resume()
            assert pairs_of(database, stopped.generation_id) == jaccard_pairs(texts_of(database), 0.3)
