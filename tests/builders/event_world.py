"""What events must be: the differences of what is committed, and a consumer that knows nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from nearsim_db.search.events import Event, choose, read
from nearsim_db.store.database import Database
from tests.builders.workers import Application

Pair = tuple[int, int]
Told = tuple[object, ...]

LARGEST = 2**63 - 1


@dataclass
class State:
    """The ledger and the clusters of a generation at one moment, twins told by their head."""

    pairs: dict[Pair, float] = field(default_factory=dict)
    members: dict[int, tuple[int, bool]] = field(default_factory=dict)

    def told(self, through: Pair) -> "State":
        """What of it has been told when a generation that went live was told of as far as a pair."""
        pairs = {pair: similarity for pair, similarity in self.pairs.items() if pair <= through}
        return State(pairs, {one: at for one, at in self.members.items() if (at[0], LARGEST) <= through})

    def survivors(self) -> dict[int, int]:
        """The survivor of each cluster."""
        return {cluster: doc_id for doc_id, (cluster, survives) in self.members.items() if survives}

    def clusters(self) -> dict[int, set[int]]:
        """The documents of each cluster."""
        found: dict[int, set[int]] = {}
        for doc_id, (cluster, _) in self.members.items():
            found.setdefault(cluster, set()).add(doc_id)
        return found


def snapshot(connection: Application, generation_id: int = 1) -> State:
    """What is committed now, as far as it has been told: nothing of a generation that is there and does not answer."""
    turns = connection.execute(
        "SELECT state, told_left_id, told_right_id FROM nearsim.generation WHERE generation_id = %s",
        [generation_id],
    ).fetchall()
    if turns and turns[0][0] != "live":
        return State()
    ties = connection.execute(
        "SELECT left_id, right_id, similarity FROM nearsim.similar_pair WHERE generation_id = %(id)s"
        " UNION ALL SELECT head_id, doc_id, 1 FROM nearsim.signature"
        " WHERE generation_id = %(id)s AND head_id <> doc_id",
        {"id": generation_id},
    ).fetchall()
    members = connection.execute(
        "SELECT doc_id, cluster_id, is_survivor FROM nearsim.cluster_member WHERE generation_id = %s",
        [generation_id],
    ).fetchall()
    state = State(
        {(int(str(a)), int(str(b))): float(str(similarity)) for a, b, similarity in ties},
        {int(str(doc_id)): (int(str(cluster)), bool(survives)) for doc_id, cluster, survives in members},
    )
    _, left, right = turns[0] if turns else (None, None, None)
    return state if left is None else state.told((int(str(left)), int(str(right))))


def differences(before: State, after: State) -> set[Told]:
    """The events that lead from one state to another, by their definitions."""
    told: set[Told] = set()
    for pair in before.pairs.keys() | after.pairs.keys():
        old, new = before.pairs.get(pair), after.pairs.get(pair)
        if old != new:
            told |= {("pair_gone", *pair, None)} if old is not None else set()
            told |= {("pair_found", *pair, new)} if new is not None else set()
    was, now = before.clusters(), after.clusters()
    survived, survives = before.survivors(), after.survivors()
    for cluster, documents in now.items():
        sources = sorted(one for one, had in was.items() if had & documents)
        others = (tuple(sources), tuple(survived[one] for one in sources))
        if not sources:
            told.add(("cluster_formed", cluster, survives[cluster], None, None))
        elif len(sources) > 1:
            told.add(("cluster_merged", cluster, survives[cluster], *others))
        elif sum(bool(has & was[sources[0]]) for has in now.values()) == 1:
            if sources != [cluster]:
                told.add(("cluster_renamed", cluster, survives[cluster], *others))
            if survived[sources[0]] != survives[cluster]:
                told.add(("survivor_changed", cluster, survives[cluster], *others))
            if documents != was[sources[0]]:
                told.add(("cluster_changed", cluster, survives[cluster], None, None))
    for cluster, documents in was.items():
        targets = sorted(one for one, has in now.items() if has & documents)
        if not targets:
            told.add(("cluster_gone", cluster, survived[cluster], None, None))
        elif len(targets) > 1:
            others = (tuple(targets), tuple(survives[one] for one in targets))
            told.add(("cluster_split", cluster, survived[cluster], *others))
    return told


def said(event: Event) -> Told:
    """What an event says."""
    if event.kind in ("pair_found", "pair_gone"):
        return event.kind, event.left_id, event.right_id, event.similarity
    return event.kind, event.cluster_id, event.survivor_id, event.other_ids, event.other_survivor_ids


class Consumer:
    """A program that knows nothing but the events, and keeps the pairs and the survivor of each cluster by them."""

    def __init__(self) -> None:
        self.pairs: dict[Pair, float] = {}
        self.survivors: dict[int, int] = {}
        self.last = 0

    def hear(self, event: Event) -> None:
        """Take in the next event."""
        assert event.event_id > self.last
        self.last = event.event_id
        others = dict(zip(event.other_ids or (), event.other_survivor_ids or (), strict=True))
        match event.kind:
            case "generation_live" | "generation_gone":
                self.pairs, self.survivors = {}, {}
            case "pair_found":
                assert event.left_id and event.right_id and event.similarity
                assert (event.left_id, event.right_id) not in self.pairs
                self.pairs[event.left_id, event.right_id] = event.similarity
            case "pair_gone":
                assert event.left_id and event.right_id
                del self.pairs[event.left_id, event.right_id]
            case _:
                self._hear_of_cluster(event, others)

    def _hear_of_cluster(self, event: Event, others: dict[int, int]) -> None:
        assert event.cluster_id and event.survivor_id
        match event.kind:
            case "cluster_gone":
                assert self.survivors.pop(event.cluster_id) == event.survivor_id
            case "cluster_split":
                # Documents of it may have come to a cluster of the same name that was told of as merged before.
                self.survivors.pop(event.cluster_id, None)
                self.survivors |= others
            case "cluster_merged" | "cluster_renamed":
                for other in others:
                    self.survivors.pop(other, None)
                self.survivors[event.cluster_id] = event.survivor_id
            case "cluster_formed":
                assert event.cluster_id not in self.survivors
                self.survivors[event.cluster_id] = event.survivor_id
            case "survivor_changed":
                self.survivors[event.cluster_id] = event.survivor_id
            case "cluster_changed":
                assert self.survivors[event.cluster_id] == event.survivor_id


def told(events: Iterable[Event]) -> list[str]:
    """What events say, in an order in which it can be compared."""
    return sorted(map(repr, map(said, events)))


class Watcher:
    """Compares what is told with what is committed, whenever it looks: after every transaction, or after many."""

    def __init__(self, database: Database, reading: Application) -> None:
        self.state, self.consumer, self.kinds = State(), Consumer(), set[str]()
        self._database, self._reading = database, reading
        self._wanted = choose(database, "default")
        self.generation_id = 1

    def look(self, *_: object) -> None:
        """What was committed since the last look is at most one transaction."""
        now = snapshot(self._reading, self.generation_id)
        found = list(read(self._database, self._wanted, self.consumer.last))
        self._hear(found)
        assert told(found) == sorted(map(repr, differences(self.state, now)))
        self.state = now

    def catch_up(self) -> None:
        """Whatever was committed since the last look."""
        self._hear(read(self._database, self._wanted, self.consumer.last))
        self.state = snapshot(self._reading, self.generation_id)
        assert self.consumer.pairs == self.state.pairs
        assert self.consumer.survivors == self.state.survivors()

    def _hear(self, found: Iterable[Event]) -> None:
        for event in found:
            self.consumer.hear(event)
            self.kinds.add(event.kind)
