"""Reindexing under 200 writes a second and constant searches, in shared tables on the newest major, else in own ones.

The test asserts what nearsim itself makes other sessions wait for, which does not depend on the machine's load:
searchers and writers have a lock_timeout of 50 ms, so that a longer wait fails, and a sampler records which locks are
held. The duration of searches does depend on the load; tests/endurance/reindexing measures it, and here only the 95th
percentile is bounded.
"""

import pytest

from nearsim_db.store.driver.statements import FIRST_OWN
from tests.endurance.reindexing import evaluation, scenario
from tests.endurance.reindexing.checks import check
from tests.endurance.reindexing.scenario import Load
from tests.endurance.reindexing.texts import make_crowd
from tests.servers.programs import newest_major

DOCUMENTS = 10_000

MOST_MILLISECONDS = 50
LOAD = Load(searches_after=100, most_waited_ms=MOST_MILLISECONDS)


@pytest.mark.slow("load")
def test_a_reindex_under_load_causes_no_errors(
    database_url: str, major: int, request: pytest.FixtureRequest
) -> None:
    if major != newest_major():
        request.getfixturevalue("own_tables")
    world = scenario.make_world(database_url, make_crowd(DOCUMENTS - 3 * LOAD.families, LOAD.seed), LOAD)
    seen = scenario.run(world, LOAD)
    numbers = {world.generation_before, seen.generation_after}
    assert {number < FIRST_OWN for number in numbers} == {major == newest_major()}
    figures = evaluation.figures(seen, LOAD)

    # No search failed, and none saw a mixture or a generation that did not answer then.
    assert evaluation.violations(seen) == {}
    assert len(seen.searches) > 100
    for kind in figures["searches by kind"].values():
        assert kind["p95"] < 10 * kind["p50"]

    # Turns hold rows of generations in one short transaction; the quickest met the least noise.
    turns = figures["locks of each try to promote"]
    assert min(max(milliseconds) for milliseconds in turns.values()) < MOST_MILLISECONDS

    # No writer was refused while generations changed places or were dropped.
    assert not evaluation.refused_by_step(seen).keys() & {*turns, "drop"}
    assert evaluation.longest_blocking(seen.watched.held) < MOST_MILLISECONDS

    counted, wrong = check(world, seen.generation_after, seen.left)
    assert wrong == {}
    assert counted["documents"] == len(seen.left) and counted["pairs"] > 1_000
