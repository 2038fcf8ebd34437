"""Detaching: no trigger is left on the table, and the collection is deleted or kept without it."""

from collections.abc import Callable

import pytest

from nearsim_db import Document, Index
from nearsim_db.admin import attach
from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.indexing import attached_table
from nearsim_db.indexing.drop_generation import delete_collection
from nearsim_db.store.attached import source_rows
from nearsim_db.store.attached.source_rows import AttachedSource
from nearsim_db.store.database import Database
from tests.builders.followed_table import CATALOG, attached, clusters, pairs, twin, words, write
from tests.builders.workers import Application, ask

pytestmark = pytest.mark.each_major


def test_detaching_leaves_no_triggers_behind(app: Application, database: Database) -> None:
    before = ask(app, CATALOG)
    ways: list[Callable[[], object]] = [
        lambda: attach.detach(database, "story", keep=False),
        lambda: attach.detach(database, "story", keep=True),
        lambda: delete_collection(database, "story"),
    ]
    for leave in ways:
        attached(database)
        assert ask(app, CATALOG) != before
        leave()
        assert ask(app, CATALOG) == before
        app.execute("DELETE FROM nearsim.collection WHERE name = 'story'")
    write(app, 40, "nobody follows")
    assert ask(app, "SELECT count(*) FROM nearsim.change WHERE doc_id IS NULL") == 0


def test_kept_documents_are_not_signed_again(story: Index, app: Application, database: Database) -> None:
    signatures = (
        "SELECT array_agg((doc_id, revision, xmin::text)::text ORDER BY doc_id)::text FROM nearsim.signature"
    )
    signed, answered = ask(app, signatures), (pairs(story), clusters(story))
    assert attach.detach(database, "story", keep=True).documents == 10
    app.execute("DROP TABLE story")
    story.build()
    assert ask(app, signatures) == signed
    assert (pairs(story), clusters(story)) == answered
    assert story.get("3")["body"] == words(1, 3)
    story.add([Document("new", "title 2", words(0, 2))])
    assert {"2", "new"} in pairs(story)
    with pytest.raises(NotFoundError, match="has no attached table"):
        attach.detach(database, "story", keep=False)


def test_progress_counts_rows_and_documents_once(story: Index, database: Database) -> None:
    reports: list[tuple[str, int]] = []

    def note(step: str, done: int, total: int | None) -> None:
        reports.append((step, done))

    with Index.connect(database.engine.url, collection="story", progress=note) as index:
        index.sweep()
    attach.detach(database, "story", keep=True, progress=note)
    assert max(done for step, done in reports if step == "follow") == 10
    assert max(done for step, done in reports if step == "keep") == 10


def test_an_interrupted_detach_with_keep_continues(
    story: Index, app: Application, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = source_rows.copy_texts
    left = [1, 1]

    def interrupted(
        connection: object, source: AttachedSource, after: int, amount: int
    ) -> tuple[int | None, int]:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return copy(connection, source, after, amount)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(attached_table, "_TEXTS_PER_BATCH", 3)
        patched.setattr(source_rows, "copy_texts", interrupted)
        with pytest.raises(KeyboardInterrupt):
            attach.detach(database, "story", keep=True)
    assert ask(app, "SELECT count(*) FROM nearsim.document WHERE body IS NOT NULL") == 6
    with pytest.raises(ConflictError, match=r"run first: nearsim table detach story --keep$"):
        attached(database)
    story.build()
    reference = twin(database, app)
    assert pairs(story) == pairs(reference)
    attach.detach(database, "story", keep=True)
    story.build()
    assert pairs(story) == pairs(reference)
    assert ask(app, "SELECT count(*) FROM nearsim_index.attachment") == 0
