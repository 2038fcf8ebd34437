"""Expected events, which are the differences between committed states, and a consumer that reads only events."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from nearsim_db.search.events import choose, read
from nearsim_db.store.clusters.events import Event
from nearsim_db.store.database import Database
from tests.builders.workers import Application

Pair = tuple[int, int]
# A similarity, and whether it is exact.
Likeness = tuple[float, bool]
Reported = tuple[object, ...]


@dataclass
class State:
    """Pairs and clusters of a generation at one moment. Twins are a pair with their head."""

    pairs: dict[Pair, Likeness] = field(default_factory=dict)
    members: dict[int, tuple[int, bool]] = field(
        default_factory=dict
    )  # cluster, and whether it is the survivor

    def survivors(self) -> dict[int, int]:
        """The survivor of each cluster."""
        return {cluster: doc_id for doc_id, (cluster, survives) in self.members.items() if survives}

    def clusters(self) -> dict[int, set[int]]:
        """The documents of each cluster."""
        documents: dict[int, set[int]] = {}
        for doc_id, (cluster, _) in self.members.items():
            documents.setdefault(cluster, set()).add(doc_id)
        return documents


FIRST = "SELECT generation_id FROM nearsim.generation ORDER BY created_at LIMIT 1"
LIVE = """
SELECT generation_id FROM nearsim.generation JOIN nearsim.profile USING (profile_id) JOIN nearsim.collection
    USING (collection_id) WHERE collection.name = %s AND profile.name = %s AND state = 'live'
"""


def snapshot(connection: Application, generation_id: int | None = None) -> State:
    """The committed state of a generation, by default of the first one; empty if the generation is not live."""
    if generation_id is None and (first := connection.execute(FIRST).fetchone()):
        generation_id = int(str(first[0]))
    state = connection.execute(
        "SELECT state FROM nearsim.generation WHERE generation_id = %s", [generation_id]
    ).fetchone()
    if state and state[0] != "live":
        return State()

    ties = connection.execute(
        "SELECT left_id, right_id, similarity, recipe->'match'->>'verify' = 'exact' FROM nearsim.similar_pair"
        " JOIN nearsim.generation USING (generation_id) WHERE generation_id = %(id)s"
        " UNION ALL SELECT head_id, doc_id, 1, true FROM nearsim.signature"
        " WHERE generation_id = %(id)s AND head_id <> doc_id",
        {"id": generation_id},
    ).fetchall()
    members = connection.execute(
        "SELECT doc_id, cluster_id, is_survivor FROM nearsim.cluster_member WHERE generation_id = %s",
        [generation_id],
    ).fetchall()
    return State(
        {
            (int(str(a)), int(str(b))): (float(str(similarity)), bool(exact))
            for a, b, similarity, exact in ties
        },
        {int(str(doc_id)): (int(str(cluster)), bool(survives)) for doc_id, cluster, survives in members},
    )


def differences(before: State, after: State) -> set[Reported]:
    """The events that lead from one state to another, by definition."""
    reported: set[Reported] = set()
    for pair in before.pairs.keys() | after.pairs.keys():
        old, new = before.pairs.get(pair), after.pairs.get(pair)
        if old != new:
            reported |= {("pair_gone", *pair, None, None)} if old is not None else set()
            reported |= {("pair_found", *pair, *new)} if new is not None else set()

    was, now = before.clusters(), after.clusters()
    survived, survives = before.survivors(), after.survivors()
    for cluster, documents in now.items():
        sources = sorted(source for source, had in was.items() if had & documents)
        merged = (tuple(sources), tuple(survived[source] for source in sources))
        if not sources:
            reported.add(("cluster_formed", cluster, survives[cluster], None, None))
        elif len(sources) > 1:
            reported.add(("cluster_merged", cluster, survives[cluster], *merged))
        elif sum(bool(has & was[sources[0]]) for has in now.values()) == 1:
            if sources != [cluster]:
                reported.add(("cluster_renamed", cluster, survives[cluster], *merged))
            if survived[sources[0]] != survives[cluster]:
                reported.add(("survivor_changed", cluster, survives[cluster], *merged))
            if documents != was[sources[0]]:
                reported.add(("cluster_changed", cluster, survives[cluster], None, None))

    for cluster, documents in was.items():
        targets = sorted(target for target, has in now.items() if has & documents)
        if not targets:
            reported.add(("cluster_gone", cluster, survived[cluster], None, None))
        elif len(targets) > 1:
            parts = (tuple(targets), tuple(survives[target] for target in targets))
            reported.add(("cluster_split", cluster, survived[cluster], *parts))
    return reported


def without_number_and_time(event: Event) -> Reported:
    """An event without its number and time, for comparison."""
    if event.kind in ("pair_found", "pair_gone"):
        return event.kind, event.left_id, event.right_id, event.similarity, event.verified
    return event.kind, event.cluster_id, event.survivor_id, event.other_ids, event.other_survivor_ids


class Consumer:
    """A program that maintains pairs and survivors from events, and reads both again when a generation goes live."""

    def __init__(self) -> None:
        self.pairs: dict[Pair, Likeness] = {}
        self.survivors: dict[int, int] = {}
        self.last = 0

    def hear(self, event: Event, reading: Application) -> None:
        """Apply the next event, unless the last snapshot includes it. Snapshots are read through `reading`."""
        if event.event_id <= self.last:
            return
        self.last = event.event_id

        survivor_of_other = dict(zip(event.other_ids or (), event.other_survivor_ids or (), strict=True))
        match event.kind:
            case "generation_live":
                self._read_snapshot(event, reading)
            case "generation_gone":
                self.pairs, self.survivors = {}, {}
            case "pair_found":
                assert event.left_id and event.right_id and event.similarity and event.verified is not None
                assert (event.left_id, event.right_id) not in self.pairs
                self.pairs[event.left_id, event.right_id] = event.similarity, event.verified
            case "pair_gone":
                assert event.left_id and event.right_id
                del self.pairs[event.left_id, event.right_id]
            case _:
                self._hear_of_cluster(event, survivor_of_other)

    def _read_snapshot(self, event: Event, reading: Application) -> None:
        """Read the number of the newest event, and the pairs and clusters of the profile as of that event."""
        with reading.transaction():
            reading.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            newest = reading.execute("SELECT max(event_id) FROM nearsim.events").fetchone()
            live = reading.execute(LIVE, [event.collection, event.profile]).fetchone()
            state = State() if live is None else snapshot(reading, int(str(live[0])))

        assert newest is not None
        self.last = int(str(newest[0]))
        self.pairs, self.survivors = state.pairs, state.survivors()

    def _hear_of_cluster(self, event: Event, survivor_of_other: dict[int, int]) -> None:
        assert event.cluster_id and event.survivor_id

        match event.kind:
            case "cluster_gone":
                assert self.survivors.pop(event.cluster_id) == event.survivor_id
            case "cluster_split":
                # The cluster may be missing here, if an earlier event reported that it merged into another one.
                self.survivors.pop(event.cluster_id, None)
                self.survivors |= survivor_of_other
            case "cluster_merged" | "cluster_renamed":
                for gone in survivor_of_other:
                    self.survivors.pop(gone, None)
                self.survivors[event.cluster_id] = event.survivor_id
            case "cluster_formed":
                assert event.cluster_id not in self.survivors
                self.survivors[event.cluster_id] = event.survivor_id
            case "survivor_changed":
                self.survivors[event.cluster_id] = event.survivor_id
            case "cluster_changed":
                assert self.survivors[event.cluster_id] == event.survivor_id


def reported(events: Iterable[Event]) -> list[str]:
    """Events in a form and order that can be compared."""
    return sorted(map(repr, map(without_number_and_time, events)))


class Watcher:
    """Compares the events with the committed state, after each transaction or after several."""

    def __init__(self, database: Database, reading: Application) -> None:
        self.state, self.consumer, self.kinds = State(), Consumer(), set[str]()
        self._database, self._reading = database, reading
        self._wanted = choose(database, "default")
        # None for the first generation.
        self.generation_id: int | None = None

    def look(self, *_: object) -> None:
        """Compare after at most one transaction since the last call."""
        now = snapshot(self._reading, self.generation_id)
        events = list(read(self._database, self._wanted, self.consumer.last))
        self._hear(events)
        assert reported(events) == sorted(map(repr, differences(self.state, now)))
        self.state = now

    def catch_up(self) -> None:
        """Compare after any number of transactions since the last call."""
        self._hear(read(self._database, self._wanted, self.consumer.last))
        self.state = snapshot(self._reading, self.generation_id)
        assert self.consumer.pairs == self.state.pairs
        assert self.consumer.survivors == self.state.survivors()

    def _hear(self, events: Iterable[Event]) -> None:
        for event in events:
            self.consumer.hear(event, self._reading)
            self.kinds.add(event.kind)
