"""Interrupted and concurrent builds and purges: nothing is lost, nothing stays behind, no session waits."""

from threading import Thread
from typing import LiteralString

import pytest

from nearsim_db import Database, Index
from nearsim_db.admin import doctor
from nearsim_db.admin.reindex import Reindex
from nearsim_db.errors import BuildStoppedError
from nearsim_db.indexing import build_plan, slice_taker
from nearsim_db.records import GenerationId
from nearsim_db.store.driver import statements
from nearsim_db.store.work import backlog
from tests.builders.filled import address_of
from tests.builders.purged_secret import doc_id_of, traces_of_id
from tests.builders.reindex_world import (
    LOWER,
    Killed,
    coming,
    fill,
    jaccard_pairs,
    opened,
    pairs_of,
    texts_of,
)
from tests.builders.selection import some

pytestmark = pytest.mark.usefixtures("either_tables")


url = address_of(fill)


def run(database: Database, *commands: str) -> None:
    """Run a statement in one transaction."""
    with database.transaction() as connection:
        for command in commands:
            connection.execute(command.encode())


@pytest.mark.parametrize("how", some(["killed", "paused"], "either way"))
def test_documents_changed_during_verification_are_searched_again(
    url: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slice_taker, "_CANDIDATES_PER_BATCH", 4)
    monkeypatch.setattr(build_plan, "_MIN_BAND_ROWS_PER_SLICE", 500)
    with opened(url) as (database, reindex):
        was = texts_of(database)["d0"]

        def progress(step: str, done: int, total: int | None) -> None:
            if step == "bands":
                run(
                    database,
                    "UPDATE nearsim.document SET body = 'quite other words' WHERE external_id = 'd0'",
                )
            if step == "candidates" and total and done > total / 2:
                if how == "killed":
                    raise Killed
                if coming(database).state == "building":
                    reindex.pause()

        with pytest.raises((BuildStoppedError, Killed)):
            Reindex(database, "default", progress=progress).start(settings=LOWER)
        with database.transaction() as connection:
            known = coming(database).tables(connection).slices.read_progress("pairs")
        assert (coming(database).stage, 0 < known.unfinished < known.slices) == ("pairs", True)
        with database.transaction() as connection:
            back = "UPDATE nearsim.document SET body = %(was)s WHERE external_id = 'd0'"
            connection.execute(back, {"was": was})
        reindex.resume()
        assert pairs_of(database, coming(database).generation_id) == jaccard_pairs(texts_of(database), 0.3)


def test_a_generation_created_during_a_purge_drops_the_texts_too(url: str) -> None:
    with opened(url) as (database, _), database.engine.connect() as holding:
        doc_id = doc_id_of(url, "d0")
        # The last thing that a purge does is to write down when it was.
        holding.execute("SELECT FROM nearsim.collection FOR NO KEY UPDATE")

        def purge() -> None:
            with Index.connect(url) as index:
                index.purge(["d0"])

        purging = Thread(target=purge)

        def progress(step: str, done: int, total: int | None) -> None:
            if step == "sign":
                holding.rollback()
                purging.join()

        purging.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while not run_one(database, waiting):
            pass
        Reindex(database, "default", progress=progress).start(settings=LOWER)
        assert traces_of_id(url, doc_id) == {}
        assert pairs_of(database, coming(database).generation_id) == jaccard_pairs(texts_of(database), 0.3)


def run_one(database: Database, query: LiteralString) -> int:
    """The number that a query returns."""
    with database.transaction() as connection:
        return int(statements.run(connection, query).value())


def test_work_for_an_irreproducible_generation_is_not_backlog(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEARSIM_DATABASE_URL", url)
    with opened(url) as (database, reindex):
        reindex.start(settings=LOWER)
        _, former = reindex.promote()
        run(
            database,
            "UPDATE nearsim.generation SET fingerprint = 'another' WHERE state = 'retired'",
            "INSERT INTO nearsim.work (generation_id, doc_id, stage) SELECT generation_id, doc_id, 'sign' "
            "FROM nearsim.document, nearsim.generation WHERE state = 'retired'",
            "UPDATE nearsim.work SET queued_at = now() - interval '1 day'",
        )
        findings = [
            one for one in doctor.examine() if one.verdict != "ok" and one.check in ("workers", "reindexes")
        ]
        (finding,) = findings
        assert f"generation {former}" in finding.finding and "cannot be written to" in finding.finding
        assert finding.advice.startswith(f"nearsim reindex drop -g {former}, or ")
        assert [one.remedy_where_refused for one in reindex.status()] == [finding.advice, None]
        with database.transaction() as connection:
            waiting = backlog.read_backlog(connection, None, [GenerationId(former or 0)])
            assert (sum(waiting.by_stage.values()), waiting.held, waiting.oldest_seconds) == (0, 40, 0)


def test_work_of_an_abandoned_generation_is_not_backlog(url: str) -> None:
    with opened(url) as (database, reindex):
        reindex.start(settings=LOWER)
        reindex.abandon()
        # As left by who was at it then.
        run(
            database,
            "INSERT INTO nearsim.work (generation_id, doc_id, stage) SELECT generation_id, doc_id, item.stage "
            "FROM nearsim.generation, (VALUES (1, 'sign'), (2, 'link')) AS item (doc_id, stage) "
            "WHERE state = 'abandoned'",
        )
        with database.transaction() as connection:
            waiting = backlog.read_backlog(connection, None)
            assert (sum(waiting.by_stage.values()), waiting.held, waiting.oldest_seconds) == (0, 0, 0)
            assert not backlog.has_remaining_work(connection, None, [])
            assert list(backlog.stream_work(connection, None, None, failed=False)) == []
        assert run_one(database, "SELECT count(*) FROM nearsim.backlog") == 0
        assert [one.waiting for one in reindex.status()] == [0, 0]
