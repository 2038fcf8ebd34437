"""Worker processes that know nothing but the address of the database build one index together."""

from contextlib import ExitStack

import pytest

from nearsim_db import Index
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.reindex_world import RECIPE, words
from tests.builders.workers import Application, application, running, wait_until
from tests.indexing.test_build_slices import rows_of
from tests.servers.citus import AnyServer

pytestmark = pytest.mark.slow("starts processes")

COUNT = 400
SMALL = "tests.builders.small_worker"
LIVE = "SELECT EXISTS (SELECT FROM nearsim.generation WHERE state = 'live')"


def fill(url: str, other: Application) -> None:
    """Documents that another application wrote, and a profile that is not built."""
    with Index.connect(url) as index:
        index.create_profile("default", override(Recipe(), RECIPE))
    for number in range(COUNT):
        other.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, %s, %s)",
            (f"d{number}", words(number)),
        )


def test_any_number_of_workers_builds_the_same_index(server: AnyServer) -> None:
    built = []
    for workers in (1, 2, 4):
        with server.database() as url, application(url) as other, ExitStack() as stack:
            fill(url, other)
            for _ in range(workers):
                stack.enter_context(running(url, module=SMALL))
            wait_until(other, LIVE)
            built.append(rows_of(url, 1))
    assert len(built[0]["similar_pair"]) == COUNT // 2
    assert built[0] == built[1] == built[2]
