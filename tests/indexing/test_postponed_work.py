"""A command that catches up waits for work that is postponed for a moment."""

from nearsim_db import Document, Index
from nearsim_db.store.driver import Connection
from nearsim_db.store.work import queue


def test_build_waits_for_postponed_work(database_url: str, connection: Connection) -> None:
    body = "The storm closed the ferry to the island for a second day, the harbour master said."
    with Index.connect(database_url) as index:
        index.add([Document("a", None, body), Document("b", None, body.replace("master", "office"))])
        (before,) = index.pairs()
        ((generation, _),) = index.profiles()
        connection.execute("DELETE FROM nearsim.similar_pair")
        queue.queue_work(connection, generation.leaves, "search", [1, 2], 0.3)
        connection.commit()
        assert list(index.pairs()) == []
        index.build()
        assert list(index.pairs()) == [before]
        assert index.stats()["queued"] == 0
