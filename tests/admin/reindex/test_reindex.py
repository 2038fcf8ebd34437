"""Reindexing: start, stop in every stage, resume, promote, roll back."""

import pytest

from nearsim_db import Database, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.errors import BuildStoppedError, ConflictError, NotFoundError
from tests.builders.filled import database_of
from tests.builders.reindex_world import (
    LOWER,
    Killed,
    StoppedAt,
    coming,
    fill,
    jaccard_pairs,
    pairs_of,
    states,
    stored,
    stories,
    texts_of,
)
from tests.builders.selection import some

# A collection with a live index, on the newest major.
database = database_of(fill)


def reindex(database: Database) -> Reindex:
    """The reindex operations of its only profile."""
    return Reindex(database, "default")


def url_of(database: Database) -> str:
    """The URL of the database."""
    return database.engine.url


def write(database: Database, edition: int, count: int = 8) -> None:
    """Change the first documents without indexing them."""
    with database.transaction() as connection:
        for document in stories(count, edition):
            change = "UPDATE nearsim.document SET body = %(body)s WHERE external_id = %(id)s"
            connection.execute(change, {"body": document.body, "id": document.external_id})


@pytest.mark.parametrize(
    "step", some(["sign", "bands", "candidates", "clusters", "catching up"], "every stage", kept=2)
)
def test_build_resumes_in_the_stage_where_it_stopped(database: Database, step: str) -> None:
    written = False

    def progress(name: str, done: int, total: int | None) -> None:
        nonlocal written
        if not written and name == "bands":
            # After the build has signed everything, so that there is something to catch up with.
            written = True
            write(database, 1)
        StoppedAt(step)("catching up" if written and name == "sign" else name, done, total)

    stopped = Reindex(database, "default", progress=progress)
    with pytest.raises(Killed):
        stopped.start(settings=LOWER)
    assert stopped.left_behind is not None
    (status,) = [one for one in reindex(database).status() if one.generation.generation_id == 2]
    built = step == "catching up"
    assert (status.generation.state, status.is_left_behind) == (
        ("catching_up", False) if built else ("building", True)
    )
    assert built or status.seconds_left is None
    with pytest.raises(
        ConflictError,
        match="left behind; to go on: nearsim reindex resume" if not built else "is catching up; see",
    ):
        reindex(database).start()
    assert reindex(database).resume().state == "ready"
    assert pairs_of(database, 2) == jaccard_pairs(texts_of(database), 0.3)
    assert pairs_of(database, 1) != pairs_of(database, 2)


def test_a_build_is_paused_and_resumed(database: Database) -> None:
    second = reindex(database)

    def pause(step: str, done: int, total: int | None) -> None:
        if step == "candidates" and coming(database).state == "building":
            second.pause()

    with pytest.raises(BuildStoppedError, match="it is paused; to resume: nearsim reindex resume"):
        Reindex(database, "default", progress=pause).start(settings=LOWER)
    assert states(database)[2] == "paused"
    assert coming(database).stage == "pairs"
    write(database, 1)
    assert second.resume(detached=True).detached
    assert second.resume().state == "ready"
    assert pairs_of(database, 2) == jaccard_pairs(texts_of(database), 0.3)
    for before in ("ready", "paused"):
        assert states(database)[2] == before
        if before == "ready":
            second.pause()
    assert second.resume().state == "ready"


def test_generation_is_abandoned_during_catch_up(database: Database) -> None:
    second = reindex(database)

    def progress(step: str, done: int, total: int | None) -> None:
        if step == "clusters" and states(database)[2] == "building":
            write(database, 1)
        elif states(database)[2] == "catching_up":
            second.abandon()

    with pytest.raises(BuildStoppedError, match="it is abandoned"):
        Reindex(database, "default", progress=progress).start(settings=LOWER)
    assert states(database) == {1: "live", 2: "abandoned"}
    with pytest.raises(NotFoundError, match="no index is being built"):
        second.resume()
    assert [one.finished for one in second.drop()] == [True]
    assert stored(database) == {1}


def test_impossible_transitions_are_refused_with_the_reason(database: Database) -> None:
    one = reindex(database)
    for move in (one.pause, one.abandon, one.resume):
        with pytest.raises(NotFoundError, match="start with: nearsim reindex start"):
            move()
    with pytest.raises(NotFoundError, match="nearsim reindex start"):
        one.promote()
    with pytest.raises(ConflictError, match="is live, not ready or retired"):
        one.promote(1)
    with pytest.raises(ConflictError, match="no retired generation to roll back to"):
        one.rollback()
    with pytest.raises(ConflictError, match="nearsim profile delete"):
        one.find_droppable(1)
    with pytest.raises(NotFoundError, match=r"has no generation 7; existing generations: 1 \(live\)"):
        one.promote(7)
    one.start(detached=True)
    with pytest.raises(ConflictError, match="is being built, not ready"):
        one.promote()
    with pytest.raises(NotFoundError, match="no profile 'other'; existing profiles: default"):
        Reindex(database, "default", "other").status()


def test_only_one_process_builds_a_generation(database: Database) -> None:
    refused: list[bool] = []

    def progress(step: str, done: int, total: int | None) -> None:
        if step == "bands" and not refused:
            with pytest.raises(ConflictError, match="is being built by another process"):
                reindex(database).resume()
            refused.extend(one.is_left_behind for one in reindex(database).status())

    Reindex(database, "default", progress=progress).start()
    assert refused == [False, False]


def test_rollback_and_promotion_with_writes_between(database: Database) -> None:
    one = reindex(database)
    one.start(settings=LOWER)
    live, before = one.promote()
    assert (live.generation_id, before) == (2, 1)
    with Index.connect(url_of(database)) as index:
        index.add(stories(8, 1))
    texts = texts_of(database)
    for turn, generation, threshold in ((one.rollback, 1, 0.5), (one.rollback, 2, 0.3)):
        write(database, generation + 5)
        texts = texts_of(database)
        assert turn()[0].generation_id == generation
        assert pairs_of(database, generation) == jaccard_pairs(texts, threshold)
    assert one.promote(1)[1] == 2
    assert states(database) == {1: "live", 2: "retired"}
    assert [left.generation.generation_id for left in one.drop()] == [2]


def test_an_empty_collection_is_reindexed(database: Database) -> None:
    with Index.connect(url_of(database)) as index:
        index.delete([f"d{number}" for number in range(40)])
        one = reindex(database)
        one.start(settings=LOWER)
        one.promote()
        index.add(stories(8))
        assert pairs_of(database, 2) == jaccard_pairs(texts_of(database), 0.3) != set()


def test_an_irreproducible_generation_is_replaced(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute("UPDATE nearsim.generation SET fingerprint = 'of another scheme'")
    warned: list[str] = []
    one = Reindex(database, "default", warn=warned.append)
    one.start()
    write(database, 1)
    one.promote()
    with Index.connect(url_of(database)) as index:
        index.build()
        assert len(index.warnings) == 1, index.warnings
    assert pairs_of(database, 2) == jaccard_pairs(texts_of(database), 0.5)
    warned.clear()
    one.rollback()
    assert len(warned) == 1 and "generation 1 serves queries, but is not being updated" in warned[0]
    assert one.promote(2)[1] == 1
