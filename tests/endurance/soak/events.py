"""A consumer of events: what it knows at the end of a round has to be what is stored."""

from nearsim_db.search.events import choose, read
from nearsim_db.store.database import Database
from tests.builders.event_world import LIVE, Consumer, snapshot
from tests.endurance.soak.system import Profile, System


class Listener:
    """The consumer of one profile's events."""

    def __init__(self, system: System, profile: Profile) -> None:
        self._system, self._profile, self._consumer = system, profile, Consumer()

    def differences(self, purged: set[str]) -> list[str]:
        """Read all new events, and compare what they say with the live generation."""
        profile, consumer = self._profile, self._consumer
        with Database.connect(self._system.url) as database:
            wanted = choose(database, profile.collection, profile.name)
            events = list(read(database, wanted, consumer.last))

        with self._system.connect() as connection:
            for event in events:
                if event.kind == "pair_gone" and purged:
                    # A purge removes the events that say that its pairs were found.
                    assert event.left_id and event.right_id
                    consumer.pairs.setdefault((event.left_id, event.right_id), (0.0, False))
                try:
                    consumer.hear(event, connection)
                except (AssertionError, KeyError) as error:
                    return [f"{profile}: event {event} does not follow from those before: {error!r}"]

            ((generation_id,),) = self._system.rows(LIVE, profile.collection, profile.name)
            state = snapshot(connection, generation_id)

        found = []
        if consumer.pairs != state.pairs:
            found.append(f"{profile}: pairs by events are {consumer.pairs}, stored {state.pairs}")
        if consumer.survivors != state.survivors():
            found.append(
                f"{profile}: survivors by events are {consumer.survivors}, stored {state.survivors()}"
            )
        return found
