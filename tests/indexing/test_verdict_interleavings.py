"""Verdicts among writers and workers, statement by statement: clusters end like those of a full link."""

import random
from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest
from psycopg import sql

from nearsim_db.indexing.queue import runner
from nearsim_db.store.work.queue import STAGES
from tests.builders.living_world import Statement, World
from tests.builders.selection import some
from tests.indexing.test_interleavings import check_clusters, play

SEEDS = [range(1), range(3, 6)]
BANDS = ["match.bucket_limit=3", "bands.count=8", "bands.rows=1", "shingle.k=1"]
WORLDS = {
    "connected": BANDS,
    "stars": [*BANDS, "cluster.linkage=representative"],
    "numbers": [*BANDS, "cluster.numbers_differ=keep-apart"],
}
TORN = """
SELECT verdict_id FROM nearsim.verdict
JOIN {cluster_member} AS one ON one.doc_id = left_id
JOIN {cluster_member} AS other ON other.doc_id = right_id AND other.cluster_id = one.cluster_id
WHERE verdict = 'vetoed' AND undone_at IS NULL
"""


class JudgedWorld(World):
    """A small live index in which users pin, veto and undo verdicts."""

    def clear(self) -> None:
        """Delete the verdicts, too."""
        super().clear()
        self.run(("TRUNCATE nearsim.verdict, nearsim.review", ()))

    def writer(self, seed: str, writes: int) -> Callable[[], None]:
        """A writer that stops if another session was faster."""
        action = super().writer(seed, writes)

        def giving_up() -> None:
            with suppress(psycopg.errors.NoDataFound, psycopg.errors.SerializationFailure):
                action()

        return giving_up

    def _write(self, rng: random.Random) -> Statement:
        if rng.random() < 0.5:
            return super()._write(rng)
        return rng.choice([(_VETO, ()), (_VETO, ()), (_PIN, (rng.randrange(1000),)), (_UNDO, ())])


_VETO = """
SELECT nearsim.veto_pair_by_doc_id(left_id, right_id, 'unlike') FROM (
    SELECT one.doc_id AS left_id, other.doc_id AS right_id
    FROM {cluster_member} AS one
    JOIN {cluster_member} AS other ON other.cluster_id = one.cluster_id AND other.doc_id > one.doc_id
    WHERE one.doc_id IN (SELECT doc_id FROM nearsim.document)
        AND other.doc_id IN (SELECT doc_id FROM nearsim.document)
    ORDER BY 2 DESC, 1 LIMIT 1
) AS last
"""
_PIN = """
SELECT nearsim.pin_pair_by_doc_id(min(doc_id), max(doc_id), 'alike') FROM (
    SELECT doc_id FROM nearsim.document ORDER BY doc_id * %s %% 17, doc_id LIMIT 2
) AS two HAVING count(*) = 2
"""
_UNDO = """
SELECT nearsim.undo_verdict_by_doc_id(left_id, right_id, 'thought again') FROM (
    SELECT left_id, right_id FROM nearsim.verdict
    WHERE undone_at IS NULL AND left_id IN (SELECT doc_id FROM nearsim.document)
        AND right_id IN (SELECT doc_id FROM nearsim.document)
    ORDER BY verdict_id LIMIT 1
) AS first
"""


def check(world: World) -> None:
    """Clusters are those of a full link, and none has the two documents of a veto."""
    check_clusters(world, None)
    assert world.run((TORN, ())) == []


@pytest.mark.parametrize("seeds", some(SEEDS, "every seed"), ids=str)
@pytest.mark.parametrize("settings", some(list(WORLDS.values()), "every world"))
def test_interleaved_verdicts_equal_a_full_link(
    database_url: str, settings: list[str], seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = JudgedWorld(database_url, settings)
    with world.index, psycopg.connect(database_url, autocommit=True) as monitor:
        database = sql.Identifier(monitor.info.dbname)
        monitor.execute(sql.SQL("ALTER DATABASE {} SET deadlock_timeout = '5ms'").format(database))
        decided = 0
        for seed in seeds:
            monkeypatch.setattr(
                runner, "_BATCH_DOCUMENTS", dict.fromkeys(STAGES, random.Random(seed).choice([1, 2, 3]))
            )
            play(world, monitor, seed, check)
            decided += len(world.run(("SELECT verdict_id FROM nearsim.verdict", ())))
    assert decided > len(seeds)
