"""Comparison of the final generation with one built from the same documents without writers."""

import psycopg

from nearsim_db.admin.reindex import Reindex
from nearsim_db.similarity.recipe import override
from nearsim_db.store.database import Database
from tests.endurance.reindexing.scenario import COLLECTION, PROFILE, World, command
from tests.endurance.reindexing.texts import SETTINGS_AFTER, recipe_before
from tests.endurance.stress.checks import violations
from tests.endurance.stress.contents import read_contents, read_large_buckets
from tests.endurance.stress.script import Text

_LEFT = """
SELECT 'change', count(*) FROM nearsim.change HAVING count(*) > 0
UNION ALL SELECT stage, count(*) FROM nearsim.work GROUP BY stage
"""


def check(
    world: World, generation_id: int, left: dict[str, Text]
) -> tuple[dict[str, int], dict[str, object]]:
    """Drain the queue, build again without writers, compare: counts and violations."""
    command(world.url, "worker", "--once", "--collection", COLLECTION, "--quiet")
    recipe = override(recipe_before(), list(SETTINGS_AFTER))
    with psycopg.connect(world.url, autocommit=True) as connection:
        waiting = {str(stage): int(count) for stage, count in connection.execute(_LEFT)}
        with Database.connect(world.url) as database:
            built = Reindex(database, COLLECTION, PROFILE).start()
        living = read_contents(connection, world.collection_id, generation_id)
        fresh = read_contents(connection, world.collection_id, built.generation_id)
        large = read_large_buckets(connection, built.generation_id, recipe.match.bucket_limit)
    found: dict[str, object] = dict(violations(living, fresh, left, large, recipe))
    if waiting:
        found["work left"] = waiting
    stored, rebuilt = living.expanded(), fresh.expanded()
    counted = {
        "documents": len(living.texts),
        "pairs stored": len(stored),
        "pairs of the fresh build": len(rebuilt),
        "pairs beyond the fresh build": len(stored - rebuilt),
        "clusters": len(living.partition()),
        "documents in large buckets": len(large),
    }
    return counted, found
