"""Other operations while a generation is being built, paused, abandoned or orphaned."""

from collections.abc import Callable
from threading import Thread

import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.analysis.report import Options, gather
from nearsim_db.errors import BuildStoppedError, FingerprintError
from nearsim_db.indexing import build_plan
from nearsim_db.indexing.drop_generation import delete_collection
from nearsim_db.indexing.purge import Purged
from nearsim_db.search.answers import Answers
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations import generation_states
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.signatures.lookups import LookupQueries
from nearsim_db.store.work import backlog
from nearsim_db.worker.worker import Worker
from tests.builders.filled import address_of
from tests.builders.purged_secret import doc_id_of, traces_of_id
from tests.builders.reindex_world import (
    LOWER,
    RECIPE,
    Killed,
    StoppedAt,
    coming,
    fill,
    jaccard_pairs,
    opened,
    pairs_of,
    states,
    stored,
    texts_of,
    words,
)
from tests.builders.selection import some, some_combinations
from tests.indexing.test_index_model import assert_bands_are_exact, clusters, components, stored_pairs

TWIN = "twin"


def with_twin(url: str) -> None:
    """Forty documents, of which d1 has a twin."""
    fill(url)
    with Index.connect(url) as index:
        index.add([Document(TWIN, body=words(1))])


url = address_of(with_twin)


def purge(url: str, name: str) -> tuple[int, Purged]:
    """Purge a document; return its doc_id and the outcome."""
    doc_id = doc_id_of(url, name)
    with Index.connect(url) as index:
        return doc_id, index.purge([name])


def assert_promoted_is_right(url: str, reindex: Reindex) -> None:
    """The new generation, once it answers, is what a fresh build would be."""
    reindex.promote()
    texts = texts_of(reindex.database)
    assert pairs_of(reindex.database, 2) == jaccard_pairs(texts, 0.3)
    with Index.connect(url) as index:
        stored = stored_pairs(index)
        assert clusters(index) == components(stored)
        assert_bands_are_exact(index)


@pytest.mark.parametrize("step", some(["sign", "bands", "candidates", "clusters"], "every stage"))
def test_an_unattended_build_is_purged_at_once(url: str, step: str) -> None:
    with opened(url) as (database, reindex):
        with pytest.raises(Killed):
            Reindex(database, "default", progress=StoppedAt(step)).start(settings=LOWER)
        if step == "bands":
            reindex.pause()
        doc_id, purged = purge(url, "d1")
        assert traces_of_id(url, doc_id) == {}
        assert (purged.later, states(database)[2]) == ([], "paused" if step == "bands" else "building")
        # The slice in which signing stopped was not committed.
        assert [traces.signatures for one, traces in purged.generations] == [1, 0 if step == "sign" else 1]
        reindex.resume()
        assert_promoted_is_right(url, reindex)


@pytest.mark.slow("a build that is interrupted, purged and resumed")
def test_an_anchor_of_full_buckets_is_purged_between_slices(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its successor links a pair in many buckets that had left it out when the slices were planned."""
    monkeypatch.setattr(build_plan, "_MIN_BAND_ROWS_PER_SLICE", 500)
    common = "one two three four five six seven eight nine"
    with Index.connect(url) as index:
        index.add(
            [
                Document(name, body=f"{common} {own}")
                for name, own in zip("abc", ("", "ten", "twelve"), strict=True)
            ]
        )

    def progress(step: str, done: int, total: int | None) -> None:
        if step == "candidates" and done:
            raise Killed

    with opened(url) as (database, reindex):
        with pytest.raises(Killed):
            limited = [*LOWER, "match.bucket_limit=1"]
            Reindex(database, "default", progress=progress).start(settings=limited)
        purge(url, "a")
        reindex.resume()
        assert ("b", "c") in pairs_of(database, 2) <= jaccard_pairs(texts_of(database), 0.3)


def test_an_attended_build_is_purged_when_it_has_caught_up(url: str) -> None:
    purges: list[tuple[int, Purged]] = []

    def progress(step: str, done: int, total: int | None) -> None:
        if step == "candidates" and not purges:
            purges.append(purge(url, "d1"))

    with opened(url) as (database, reindex):
        Reindex(database, "default", progress=progress).start(settings=LOWER)
        ((doc_id, purged),) = purges
        assert [one.generation_id for one in purged.later] == [2]
        assert [one.generation_id for one, _ in purged.generations] == [1]
        assert traces_of_id(url, doc_id) == {}
        assert_promoted_is_right(url, reindex)


def test_an_abandoned_generation_is_purged_too(url: str) -> None:
    with opened(url) as (database, reindex):
        with pytest.raises(Killed):
            Reindex(database, "default", progress=StoppedAt("clusters")).start(settings=LOWER)
        reindex.abandon()
        doc_id, purged = purge(url, "d1")
        assert traces_of_id(url, doc_id) == {}
        assert {one.state for one, _ in purged.generations} == {"live", "abandoned"}


class Deletion:
    """Progress of a build during which another session deletes its profile or collection."""

    def __init__(self, url: str, kind: str) -> None:
        self.url = url
        self.thread = Thread(target=self.delete_profile if kind == "profile" else self.delete_collection)
        self.begun = False

    def delete_profile(self) -> None:
        with Index.connect(self.url) as index:
            index.delete_profile("second" if "second" in names(index) else "default")

    def delete_collection(self) -> None:
        with Database.connect(self.url) as database:
            delete_collection(database, "default")

    def __call__(self, step: str, done: int, total: int | None) -> None:
        """Continue when the other session has ended the build."""
        if step == "bands" and not self.begun:
            self.begun = True
            self.thread.start()
            with Database.connect(self.url) as database:
                while states(database)[2] != "abandoned":
                    pass


def names(index: Index) -> list[str]:
    return [row.profile for row in index.profiles()]


@some_combinations(("kind", ["profile", "collection"]), ("build", ["first", "beside"]))
def test_deleting_ends_builds(url: str, kind: str, build: str) -> None:
    deletion = Deletion(url, kind)
    with opened(url) as (database, _), Index(Database.connect(url), "default", progress=deletion) as index:
        with pytest.raises(BuildStoppedError):
            if build == "first":
                index.create_profile("second", override(Recipe(), RECIPE))
            else:
                Reindex(database, "default", progress=deletion).start(settings=LOWER)
        deletion.thread.join()
        if (kind, build) == ("profile", "first"):
            assert names(index) == ["default"] and stored(database) == {1}
            index.create_profile("third", override(Recipe(), RECIPE))
        else:
            assert stored(database) == set()
            assert [one.name for one in database.collections()] == (["default"] if kind == "profile" else [])


def test_work_that_waits_for_a_build_is_not_backlog(url: str) -> None:
    with opened(url) as (database, reindex):
        with pytest.raises(Killed):
            Reindex(database, "default", progress=StoppedAt("candidates")).start(settings=LOWER)
        reindex.pause()
        with database.transaction() as connection:
            connection.execute("UPDATE nearsim.document SET body = body || ' more' WHERE doc_id < 10")
        Worker(url).drain()
        with database.transaction() as connection:
            connection.execute("UPDATE nearsim.work SET queued_at = now() - interval '1 hour'")
            waiting = backlog.read_backlog(connection, None)
            assert (sum(waiting.by_stage.values()), waiting.held, waiting.oldest_seconds) == (0, 9, 0)
            items = list(backlog.stream_work(connection, None, None, failed=False))
            assert {item.state for item in items} == {"held"}
            view = "SELECT waiting, due, state FROM nearsim.backlog"
            assert [tuple(row) for row in connection.execute(view)] == [(9, 0, "paused")]
            generation_states.change_state(connection, coming(database), "catching_up", ["paused"])
            waiting = backlog.read_backlog(connection, None)
            assert (sum(waiting.by_stage.values()), waiting.held, waiting.oldest_seconds) == (9, 0, 0)
            connection.rollback()
        with Index.connect(url) as index:
            assert index.stats()["queued"] == 0


def test_an_irreproducible_generation_is_readable(url: str) -> None:
    with Index.connect(url) as index:

        def answers() -> list[object]:
            return [
                sorted((one.left, one.right, one.similarity) for one in index.pairs()),
                list(index.clusters()),
                index.similar("d1"),
                {**index.stats(), "fingerprint": None},
                index.metric(),
                [row.generation_id for row in index.profiles()],
                gather(index.database, "default", None, Options()).index,
            ]

        before = answers()
        with index.database.transaction() as connection:
            connection.execute("UPDATE nearsim.generation SET fingerprint = 'another'")
        assert answers() == before
        with pytest.raises(FingerprintError, match="reindex start"):
            index.similar_to_text(words(1))


class Overtaken(Answers):
    """Reads; between choosing the generation and reading it, another is promoted and that one dropped."""

    reindex: Reindex

    def _live(self, connection: Connection, external_id: str | None = None) -> Generation:
        found = super()._live(connection, external_id)
        overtake(self.reindex)
        return found


def overtake(reindex: Reindex) -> None:
    """Promote what is ready, and drop what that retires."""
    if "ready" in states(reindex.database).values():
        reindex.promote()
        reindex.drop()


@pytest.mark.usefixtures("either_tables")
@pytest.mark.parametrize("answer", some(["pairs", "clusters", "similar"], "every answer"))
def test_an_answer_is_of_one_generation_if_its_own_is_dropped(url: str, answer: str) -> None:
    """Rows of shared tables stay in its snapshot; where tables are missing, it is of the new generation."""
    with opened(url) as (database, reindex):
        threshold = 0.5 if reindex.start(settings=LOWER).leaves.are_shared else 0.3
        reading = Overtaken(database, "default")
        reading.reindex = reindex
        queries: dict[str, Callable[[], object]] = {
            "pairs": lambda: {tuple(sorted((one.left, one.right))) for one in reading.pairs(0.0)},
            "clusters": lambda: {one for cluster in reading.clusters() for one in cluster.members},
            "similar": lambda: {one.external_id for one in reading.similar("d1", 0.0)},
        }
        found = queries[answer]()
        assert list(states(database).values()) == ["live"]
        pairs = jaccard_pairs(texts_of(database), threshold)
        expected = {
            "pairs": pairs,
            "clusters": {name for pair in pairs for name in pair},
            "similar": {name for pair in pairs if "d1" in pair for name in pair} - {"d1"},
        }
        assert found == expected[answer]


@pytest.mark.usefixtures("either_tables")
@pytest.mark.parametrize(("step", "limit"), [("read_twins", None), ("read_candidates", 10)])
def test_a_lookup_is_of_one_generation_if_its_own_is_dropped(
    url: str, step: str, limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(url) as (database, reindex), Index.connect(url) as index:
        reindex.start(settings=LOWER)
        read = getattr(LookupQueries, step)

        def overtaken(*given: object) -> object:
            overtake(reindex)
            return read(*given)

        monkeypatch.setattr(LookupQueries, step, overtaken)
        found = {match.external_id for match in index.similar_to_text(words(1), limit=limit)}
        assert list(states(database).values()) == ["live"]
        pairs = jaccard_pairs({**texts_of(database), "": words(1)}, 0.3)
        assert found == {name for pair in pairs if "" in pair for name in pair} - {""}
