"""Helper processes that sign documents while they are read: the same index, whatever happens to them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import psycopg
import pytest
from psycopg import sql

from nearsim_db import Index
from nearsim_db.errors import NearsimError
from nearsim_db.indexing import catch_up
from nearsim_db.indexing import ingest as ingest_module
from nearsim_db.indexing.catch_up import start_helpers
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.feature_spool import FeatureSpool
from nearsim_db.indexing.helper_process import SignDocuments
from nearsim_db.indexing.signing import HelperSigner, LocalSigner
from nearsim_db.readers import from_documents
from nearsim_db.store.generations import partitions
from tests.builders.reindex_world import RECIPE, stories, words
from tests.builders.workers import BLOCKED, wait_until
from tests.indexing.test_early_signing import assert_exact, create

COUNT = 40


@dataclass(frozen=True)
class Signing:
    """A helper that signs for the only profile of an empty index, and the warnings of its context."""

    index: Index
    context: Context
    signer: HelperSigner
    warnings: list[str]

    def insert(self, first: int, last: int) -> SignDocuments:
        """Insert stories, numbered from 1, and return what is to be signed."""
        with self.index.database.engine.begin() as connection:
            for number in range(first, last + 1):
                connection.execute(
                    "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, %s, %s)",
                    (f"d{number}", words(number)),
                )
        return batch(range(first, last + 1))

    @property
    def table(self) -> sql.Identifier:
        """The table of signatures."""
        return self.context.leaves.table("signature")


def batch(numbers: Sequence[int]) -> SignDocuments:
    """What is to be signed of some stories, whose doc_ids are their numbers."""
    doc_ids = np.array(numbers, np.int64)
    bodies = [words(number) for number in numbers]
    return SignDocuments(doc_ids, np.ones(len(numbers), np.int64), [None] * len(numbers), bodies)


@contextmanager
def helper_signing(url: str) -> Iterator[Signing]:
    warnings = list[str]()
    with ExitStack() as stack:
        index = stack.enter_context(Index.connect(url))
        create(index, RECIPE)
        index.database.jobs = 2
        ((generation, _),) = index.profiles()
        context = index._contexts.make(generation)
        context.warn = warnings.append
        stack.callback(context.build.close)
        with index.database.transaction() as connection:
            partitions.create(connection, context.leaves)
        context.build.spool = FeatureSpool.create(context.encoder)
        context.build.helpers = start_helpers(index.database, context)
        yield Signing(index, context, HelperSigner(context.build.helpers[0], context, 1), warnings)


def test_a_helper_signs_as_this_process_does(database_url: str) -> None:
    """Both spool their features to one file; the directory that is read has all."""
    with helper_signing(database_url) as signing:
        context, index = signing.context, signing.index
        signing.signer.wait()
        (helper,) = context.build.helpers
        assert os.getpgid(helper.process.pid) != os.getpgrp()  # Ctrl-C in a terminal does not reach it
        signing.signer.sign(signing.insert(1, 4))
        local = LocalSigner(index.database.engine, [context])
        local.sign(signing.insert(5, 8))
        signing.signer.sign(signing.insert(9, 12))
        signing.signer.finish()
        assert context.build.spool is not None
        context.build.spool.gather()
        assert (context.build.signed_early, context.build.texts.texts, len(context.build.spool)) == (
            12,
            12,
            12,
        )
        encoded = context.encoder.encode([words(number) for number in range(1, 13)], keep_features=True)
        with psycopg.connect(database_url) as connection:
            stored = connection.execute(
                sql.SQL("SELECT doc_id, sketch, feature_digest FROM {} ORDER BY doc_id").format(signing.table)
            ).fetchall()
        assert [(row[0], bytes(row[1])) for row in stored] == [
            (doc_id, sketch.tobytes()) for doc_id, sketch in enumerate(encoded.sketches, 1)
        ]
        found = context.build.spool.get_all([row[0] for row in stored], [row[2] for row in stored])
        for features, expected in zip(found, encoded.features, strict=True):
            assert features is not None and features.tolist() == expected.tolist()


@pytest.mark.slow("child processes")
def test_an_ingest_with_helpers_is_exact(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "_BATCH_DOCUMENTS", 4)
    monkeypatch.setattr(catch_up, "_MANY_BYTES", 0)
    with Index.connect(database_url) as index:
        index.database.jobs = 3
        create(index, RECIPE)
        index.ingest(from_documents(stories(COUNT)), expected_bytes=1)
        assert_exact(index)


@pytest.mark.slow("child processes")
def test_a_killed_helper(database_url: str) -> None:
    """The build signs what it had."""
    with helper_signing(database_url) as signing:
        signer, (helper,) = signing.signer, signing.context.build.helpers
        signer.wait()
        with (
            psycopg.connect(database_url, autocommit=True) as asking,
            psycopg.connect(database_url) as holding,
        ):
            holding.execute(sql.SQL("LOCK {}").format(signing.table))
            signer.sign(signing.insert(1, 4))
            wait_until(asking, BLOCKED)
            helper.process.kill()
            signer.finish()
        assert (
            signer.is_ended
            and signing.context.build.helpers == []
            and signing.context.build.signed_early == 0
        )
        assert signing.warnings == [
            "a process that signed documents was killed by signal 9; the build signs those that it had"
        ]
        signing.index.build()
        assert_exact(signing.index)


@pytest.mark.slow("child processes")
@pytest.mark.usefixtures("own_tables")  # the column of a partition cannot be renamed
def test_an_error_of_a_helper_is_raised(database_url: str) -> None:
    with helper_signing(database_url) as signing:
        batch_of_one = signing.insert(1, 1)
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(sql.SQL("ALTER TABLE {} RENAME COLUMN sketch TO other").format(signing.table))
        signing.signer.sign(batch_of_one)
        with pytest.raises(NearsimError, match="sketch"):
            signing.signer.finish()
