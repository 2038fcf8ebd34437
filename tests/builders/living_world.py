"""A small live index with concurrent writers and workers."""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import sql

from nearsim_db import Index
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.queue.dispatch import dispatch_changes, dispatch_leased
from nearsim_db.indexing.queue.runner import Runner
from nearsim_db.records import WorkStage
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.driver.statements import PARENTS
from nearsim_db.store.work.queue import STAGES
from tests.builders.interleaving import step_through

Statement = tuple[str, tuple[object, ...]]

THRESHOLD = 0.5
_SETTINGS = ["shingle.min_token_length=2", "sketch.k=8", f"match.threshold={THRESHOLD}"]
_BASES = ["aa bb cc dd ee ff", "aa bb cc dd gg hh", "ii jj kk ll mm nn", "aa ii"]
_TOKENS = [*(f"w{letter}" for letter in "abcdefgh"), "1", "2", "3"]
# A worker draws a stage at random. None stands for dispatching.
_STAGES: list[WorkStage | None] = [
    None,
    None,
    "sign",
    "sign",
    "sign",
    "search",
    "search",
    "anchor",
    "link",
    "link",
]


class World:
    """One collection with one profile, which was built while the collection was empty.

    Words of one letter are not features, but digits in them are numbers in which texts can differ.
    """

    def __init__(self, url: str, settings: list[str]) -> None:
        self.index = Index.connect(url, collection=" ".join(settings))
        self.profile = self.index.create_profile("default", override(Recipe(), _SETTINGS + settings))
        self.index.build()
        self.engine = self.index.database.engine
        step_through(self.engine)
        self.generation = self.index.serving().context.generation

    def context(self) -> Context:
        """A new context for a worker."""
        return self.index._contexts.make(self.generation)

    def run(self, *statements: Statement) -> list[tuple[Any, ...]]:
        """Run SQL in one transaction, with the names of the partitions filled in; return the last rows."""
        names = {parent: self.generation.leaves.table(parent) for parent in PARENTS}
        with self.engine.begin() as connection:
            for command, values in statements:
                cursor = connection.execute(sql.SQL(command).format(**names), values)
            return cursor.fetchall() if cursor.description else []

    def clear(self) -> None:
        """Delete all documents and their index. The doc_ids up to 19 stay free for transactions that commit late."""
        self.run(
            (
                "TRUNCATE nearsim.document, nearsim.work, nearsim_index.lease, {signature}, {band}, {similar_pair},"
                " {cluster_member}",
                (),
            ),
            ("TRUNCATE nearsim.change", ()),
            ("ALTER TABLE nearsim.document ALTER doc_id RESTART WITH 20", ()),
        )

    def writer(self, seed: str, writes: int) -> Callable[[], None]:
        """An application that writes one to three documents in each transaction."""

        def action() -> None:
            rng = random.Random(seed)
            left = writes
            while left > 0:
                statements = [self._write(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
                left -= len(statements)
                # Applications have to handle a conflict with another writer.
                with suppress(psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
                    self.run(*statements)

        return action

    def worker(self, seed: str, amount: int) -> Callable[[], None]:
        """A process that does batches of random stages under its own lease."""

        def action() -> None:
            rng = random.Random(seed)
            context = self.context()
            runner = Runner(self.engine, context)

            with self.index.database.lease() as lease_id:
                for _ in range(amount):
                    stage = rng.choice(_STAGES)
                    if stage is None and rng.random() < 0.5:
                        dispatch_changes(self.engine)
                    elif stage is None:
                        ids = [context.generation.generation_id]
                        for batch in dispatch_leased(self.engine, lease_id, ids)[1].values():
                            if (signed := runner.run(batch)) is not None:
                                runner.run(signed)
                    else:
                        runner.work(stage, lease_id)

        return action

    def drain(self) -> None:
        """Process all remaining work in one process, retries included."""
        context = self.context()
        with self.index.database.lease() as lease_id:
            dispatch_changes(self.engine)
            # Retries are due later, so make all remaining work due now.
            while self.run(("UPDATE nearsim.work SET due_at = now() RETURNING doc_id", ())):
                for stage in STAGES:
                    while Runner(self.engine, context).work(stage, lease_id):
                        pass

    def _write(self, rng: random.Random) -> Statement:
        collection_id = self.generation.collection_id
        name, text, date = f"d{rng.randrange(9)}", _text(rng), f"2026-05-{rng.randrange(1, 20):02}"
        columns = "INSERT INTO nearsim.document (collection_id, external_id, body, published_at"

        return rng.choice(
            4
            * [
                (
                    f"{columns}) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                    (collection_id, name, text, date),
                )
            ]
            + 2
            * [
                (
                    f"{columns}, doc_id) OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                    (collection_id, name, text, date, rng.randrange(1, 20)),
                )
            ]
            + 3 * [("UPDATE nearsim.document SET body = %s WHERE external_id = %s", (text, name))]
            + [
                ("UPDATE nearsim.document SET published_at = %s WHERE external_id = %s", (date, name)),
                (_EDIT_OR_EDIT_BACK, (name,)),
                (_DELETE_AND_INSERT, (name,)),
                ("DELETE FROM nearsim.document WHERE external_id = %s", (name,)),
            ]
        )


_EDIT_OR_EDIT_BACK = """
UPDATE nearsim.document SET body = CASE WHEN body LIKE 'xx %%' THEN substr(body, 4) ELSE 'xx ' || body END
WHERE external_id = %s
"""
_DELETE_AND_INSERT = """
WITH gone AS (DELETE FROM nearsim.document WHERE external_id = %s RETURNING *)
INSERT INTO nearsim.document (collection_id, external_id, body, published_at)
SELECT collection_id, external_id, body, published_at FROM gone
"""


def _text(rng: random.Random) -> str:
    """One of a few texts, often with a changed word or number, and sometimes without any word."""
    words = rng.choice(_BASES).split()
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        words[rng.randrange(len(words))] = rng.choice(_TOKENS)
    return " ".join(words) if rng.random() > 0.04 else "5 6"
