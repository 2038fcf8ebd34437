"""Documents written in plain SQL by other applications, indexed by `build`."""

import threading
from collections.abc import Sequence

import pytest

from nearsim_db import Document, Index
from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.queue.dispatch import dispatch_changes
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.driver import Engine

TEXT = "the council voted on tuesday to close the old swimming bath at the end of the season"


@pytest.fixture
def index(database_url: str) -> Index:
    """Two copies and a single, indexed."""
    index = Index.connect(database_url)
    index.add([Document("a", body=TEXT), Document("b", body=TEXT), Document("c", body="nothing of the sort")])
    return index


def pairs(index: Index) -> set[tuple[str, str]]:
    """The pairs after indexing the changes."""
    index.build()
    return {(pair.left, pair.right) for pair in index.pairs()}


def run(engine: Engine, command: str) -> None:
    """Run a statement as another application."""
    with engine.begin() as connection:
        connection.execute(command.encode())


def test_rows_are_inserted_updated_and_deleted(index: Index, engine: Engine) -> None:
    with index:
        run(
            engine,
            "INSERT INTO nearsim.document (collection_id, external_id, body) "
            "SELECT collection_id, 'd', body || ' at last' FROM nearsim.document WHERE external_id = 'a'",
        )
        assert pairs(index) == {("a", "b"), ("a", "d"), ("b", "d")}
        run(engine, "UPDATE nearsim.document SET body = NULL WHERE external_id = 'b'")
        assert pairs(index) == {("a", "d")}
        run(engine, "UPDATE nearsim.document SET external_id = 'z' WHERE external_id = 'd'")
        assert pairs(index) == {("a", "z")}
        run(engine, "DELETE FROM nearsim.document WHERE external_id = 'a'")
        assert pairs(index) == set()
        run(engine, "TRUNCATE nearsim.document")
        assert pairs(index) == set()
        assert index.stats()["indexed"] == 0


def test_document_inserted_again_with_an_older_revision_is_indexed(index: Index, engine: Engine) -> None:
    with index:
        run(
            engine,
            "UPDATE nearsim.document SET body = 'changed before it is replaced' WHERE external_id = 'c'",
        )
        assert pairs(index) == {("a", "b")}
        run(
            engine,
            "CREATE TEMPORARY TABLE saved AS SELECT * FROM nearsim.document WHERE external_id = 'c'; "
            "DELETE FROM nearsim.document WHERE external_id = 'c'; "
            "INSERT INTO nearsim.document (doc_id, collection_id, external_id, body, revision) OVERRIDING SYSTEM VALUE "
            "SELECT saved.doc_id, collection_id, 'c', document.body, saved.revision - 1 "
            "FROM saved JOIN nearsim.document USING (collection_id) WHERE document.external_id = 'a'",
        )
        assert pairs(index) == {("a", "b"), ("a", "c"), ("b", "c")}


def test_document_moved_to_another_collection(index: Index, engine: Engine, database_url: str) -> None:
    with index, Index.connect(database_url, collection="other") as other:
        other.add([Document("x", body=TEXT + " this year")])
        run(
            engine,
            "UPDATE nearsim.document SET collection_id = (SELECT collection_id FROM nearsim.collection "
            "WHERE name = 'other') WHERE external_id = 'b'",
        )
        assert pairs(index) == set()
        assert pairs(other) == {("b", "x")}
        assert index.stats()["indexed"] == 2


def test_reused_doc_id_is_another_document(index: Index, engine: Engine) -> None:
    with index:
        run(engine, "TRUNCATE nearsim.document RESTART IDENTITY")
        run(
            engine,
            "INSERT INTO nearsim.document (collection_id, external_id, body) "
            "SELECT collection_id, 'n' || n, 'entirely new words about something else that nobody wrote before' "
            "FROM nearsim.collection, generate_series(1, 3) AS n",
        )
        assert pairs(index) == {("n1", "n2"), ("n1", "n3"), ("n2", "n3")}


def test_changes_during_signing_are_not_lost(
    index: Index, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update and another process's dispatch, between reading a document for signing and committing that."""
    other = [
        "UPDATE nearsim.document SET body = 'words that come in while the old ones are signed' "
        "WHERE external_id IN ('a', 'c')"
    ]
    sign = steps.sign_documents
    dispatching: list[threading.Thread] = []

    def interrupted(
        context: Context, batch: Sequence[StoredDocument], *, keep_features: bool = False
    ) -> SignatureRows:
        rows = sign(context, batch, keep_features=keep_features)
        while other:
            run(engine, other.pop())
            dispatching.append(threading.Thread(target=dispatch_changes, args=(engine,)))
            dispatching[0].start()
        return rows

    with index:
        run(engine, "UPDATE nearsim.document SET body = body || ' once more' WHERE external_id = 'a'")
        monkeypatch.setattr(steps, "sign_documents", interrupted)
        index.build()
        for thread in dispatching:
            thread.join(timeout=60)
            assert not thread.is_alive(), "dispatch_changes is still waiting 60 seconds after the build"
        assert dispatching and not other
        assert pairs(index) == {("a", "c")}
