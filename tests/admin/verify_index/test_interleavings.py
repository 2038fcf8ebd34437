"""verify-index interleaved with writers and workers by statement: a sound index has no faults."""

import random

import psycopg
import pytest

from nearsim_db.admin.verify_index import check, verify_index
from nearsim_db.indexing import work_queue
from nearsim_db.store.work.queue import STAGES
from tests.builders.interleaving import Actor, Schedule
from tests.builders.living_world import World
from tests.builders.selection import some
from tests.indexing.test_interleavings import WORLDS

_SEEDS = 1


@pytest.mark.parametrize("name", some(["limit 2", "stars", "limit 1", "numbers"], "every world", kept=2))
def test_work_in_progress_is_not_a_fault(
    database_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(database_url, WORLDS[name])
    with world.index, psycopg.connect(database_url, autocommit=True) as monitor:
        for seed in range(_SEEDS):
            rng = random.Random(f"{name} {seed}")
            monkeypatch.setattr(
                work_queue, "_BATCH_SIZES", {stage: rng.choice([1, 2, 3]) for stage in STAGES}
            )
            monkeypatch.setattr(check, "_DOCUMENTS_AT_ONCE", rng.choice([1, 4, 1000]))
            _play(world, monitor, rng)


def _play(world: World, monitor: "psycopg.Connection[tuple[object, ...]]", rng: random.Random) -> None:
    world.clear()
    schedule = Schedule(rng, monitor)
    sizes = [None, 5, None]

    def audit() -> None:
        for size in sizes:
            outcome = verify_index(world.index.database, world.index.collection, sample=size)
            assert outcome.found.faults == (), outcome

    actors = [Actor(f"writer {number}", world.writer(rng.random().hex(), 8)) for number in (1, 2)]
    actors += [Actor(f"worker {number}", world.worker(rng.random().hex(), 16)) for number in (1, 2)]
    try:
        schedule.run([*actors, Actor("auditor", audit)], lambda killed: None)
        world.drain()
        drained = verify_index(world.index.database, world.index.collection, sample=None).found
        assert (drained.faults, drained.changing) == ((), 0)
    except BaseException as error:
        error.add_note(f"after these steps:\n{schedule.listing()}")
        raise
