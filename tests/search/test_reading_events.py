"""Reading events: from a position, as they arrive, across lost connections, and never past pruned ones."""

from collections.abc import Iterator
from itertools import islice

import pytest

from nearsim_db import Document, Index
from nearsim_db.errors import MissedEventsError, NearsimError, NotFoundError
from nearsim_db.search import events
from nearsim_db.search.events import Follower, choose, kept_seconds, prune, read
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.clusters.events import Event, EventFilter
from nearsim_db.worker.worker import Worker
from tests.builders.workers import Application, WorkerLog, application, ask

DAY_SECONDS = 86_400
ALIKE = "one two three four five six"


@pytest.fixture
def index(database_url: str) -> Iterator[Index]:
    """Three twins; two of them were added to a live index, which reports their pairs."""
    with Index.connect(database_url) as index:
        index.add([Document("d0", body=ALIKE)])
        index.add(Document(f"d{number}", body=ALIKE) for number in range(1, 3))
        yield index


def numbers(found: Iterator[Event]) -> list[int]:
    """The numbers of events."""
    return [one.event_id for one in found]


def grow_old(writing: Application, through: int) -> None:
    """Date events up to one back by two days."""
    writing.execute("UPDATE nearsim.event SET at = at - interval '2 days' WHERE event_id <= %s", [through])


@pytest.mark.usefixtures("either_tables")
def test_consumer_continues_at_its_position(index: Index) -> None:
    first = list(index.events())
    assert [one.kind for one in first] == ["generation_live", "pair_found", "pair_found", "cluster_formed"]
    generation_id = index.serving().context.leaves.generation_id
    named = {(one.collection, one.profile, one.generation_id) for one in first}
    assert named == {("default", "default", generation_id)}
    assert (first[-1].cluster_id, first[-1].survivor, first[-1].survivor_id) == (1, "d0", 1)
    index.add([Document("d3", body=ALIKE)])
    more, grown = index.events(first[-1].event_id)
    assert (more.kind, more.left, more.right, more.similarity) == ("pair_found", "d0", "d3", 1.0)
    assert (grown.kind, grown.cluster_id, grown.survivor) == ("cluster_changed", 1, "d0")
    assert numbers(index.events()) == [*numbers(iter(first)), more.event_id, grown.event_id]


def test_events_are_filtered(index: Index) -> None:
    index.create_profile("strict", override(Recipe(), ["match.threshold=0.9"]))
    database = index.database
    index.profile = "strict"
    strict = list(index.events())
    assert [(one.kind, one.profile) for one in strict] == [("generation_live", "strict")]
    index.profile = None
    assert len(list(index.events())) == len(list(read(database, EventFilter()))) == 5
    clusters = read(database, choose(database, "default", "default", ["cluster_formed"]))
    assert [one.kind for one in clusters] == ["cluster_formed"]
    for wrong in (("nowhere", None), ("default", "lax")):
        with pytest.raises(NotFoundError, match=r"existing (collections|profiles): "):
            choose(database, *wrong)


def test_pruned_events_are_reported_to_consumers_behind(
    index: Index, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_PRUNED_PER_BATCH", 2)
    first = numbers(index.events())
    index.add([Document("d3", body=ALIKE)])
    with application(database_url) as writing:
        grow_old(writing, first[2])
        assert prune(index.database.engine, DAY_SECONDS) == 3
        assert numbers(index.events(first[2])) == numbers(index.events())
        assert numbers(index.events())[0] == first[3]
        with pytest.raises(MissedEventsError, match=f"to {first[2]} were removed") as missed:
            list(index.events(first[1]))
        assert missed.value.through == first[2]
        # A mark for each kind, and only there where something of the kind is missing.
        assert ask(writing, "SELECT count(*) FROM nearsim.event WHERE pruned") == 2
        clusters = choose(index.database, "default", kinds=["cluster_formed"])
        assert numbers(read(index.database, clusters, 0)) == [first[3]]
        assert prune(index.database.engine, DAY_SECONDS) == 0
        grow_old(writing, first[3] + 10)
        assert prune(index.database.engine, DAY_SECONDS) == 3
        assert ask(writing, "SELECT count(*) FROM nearsim.event WHERE pruned") == 4
        assert list(index.events()) == []
        with pytest.raises(MissedEventsError):
            list(index.events(first[3]))
        assert list(index.events(first[3] + 2)) == []


def test_collection_without_events_misses_nothing(index: Index, database_url: str) -> None:
    quiet = numbers(index.events())
    with Index.connect(database_url, collection="busy") as busy, application(database_url) as writing:
        busy.add(Document(f"d{number}", body=ALIKE) for number in range(4))
        grow_old(writing, quiet[-1] + 100)
        assert prune(busy.database.engine, DAY_SECONDS) == len(quiet) + 1
    assert list(index.events(quiet[-1])) == []


def test_workers_prune_old_events(index: Index, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (kept_seconds("2 days", "age"), kept_seconds("none", "age")) == (2 * DAY_SECONDS, None)
    monkeypatch.setenv("NEARSIM_KEEP_EVENTS", "long")
    with pytest.raises(NearsimError, match="NEARSIM_KEEP_EVENTS is 'long'"):
        Worker(database_url).drain()
    with application(database_url) as writing:
        grow_old(writing, 1_000)
        Worker(database_url, keep_events="none").drain()
        Worker(database_url, keep_events="1 week").drain()
        assert len(list(index.events())) == 4
        Worker(database_url, keep_events="1 day").drain()
        assert list(index.events()) == []


def test_following_continues_after_a_lost_connection(
    index: Index, database_url: str, logged: WorkerLog
) -> None:
    follower = Follower(index.database, EventFilter())
    following = follower.follow()
    first = list(islice(following, 4))
    with application(database_url) as writing, Index.connect(database_url) as other:
        writing.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        other.add([Document("d3", body=ALIKE)])
    event = next(following)
    assert (event.kind, event.right) == ("pair_found", "d3")
    assert event.event_id > first[-1].event_id
    assert [one.event for one in logged.events()] == ["lost", "reconnected"]
    following.close()


def test_following_only_new_events(index: Index) -> None:
    stopping = False
    follower = Follower(index.database, EventFilter(), new=True, stopping=lambda: stopping)
    batches = follower._batches()
    assert next(batches) == []
    index.add([Document("d3", body=ALIKE)])
    assert [(one.kind, one.right) for one in next(batches)] == [
        ("pair_found", "d3"),
        ("cluster_changed", None),
    ]
    stopping = True
    assert list(batches) == []
    assert list(follower.follow()) == []


def test_slow_follower_gets_a_report_of_pruned_events(index: Index, database_url: str) -> None:
    follower = Follower(index.database, EventFilter())
    following = follower.follow()
    assert next(following).kind == "generation_live"
    index.add([Document("d3", body=ALIKE)])
    with application(database_url) as writing:
        grow_old(writing, 1_000)
    prune(index.database.engine, DAY_SECONDS)
    assert len(list(islice(following, 3))) == 3
    with pytest.raises(MissedEventsError):
        next(following)
