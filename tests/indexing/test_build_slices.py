"""Builds in slices: the same result whatever was signed before, and however many processes take part."""

from collections.abc import Sequence

import psycopg

from nearsim_db import Index
from nearsim_db.indexing import build, steps
from nearsim_db.indexing.context import Context
from nearsim_db.records import silent
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store import documents, generation_rows, partitions, signatures
from nearsim_db.store.driver import Connection
from tests.builders.reindex_world import RECIPE, jaccard_pairs, pairs_of, stories, texts_of

COUNT = 40


def fill(url: str) -> None:
    """Documents of a collection with a profile that is not built."""
    with Index.connect(url) as index:
        index.create_profile("default", override(Recipe(), RECIPE))
    rows = [(one.external_id, one.body) for one in stories(COUNT)]
    with psycopg.connect(url) as connection:
        connection.cursor().executemany(
            "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, %s, %s)", rows
        )


def context_of(index: Index) -> Context:
    """The context of the newest generation."""
    with index.database.transaction() as connection:
        generation = generation_rows.list_generations(connection)[-1]
    return index._contexts.make(generation)


def sign(connection: Connection, context: Context, doc_ids: Sequence[int]) -> None:
    """Sign some documents before the build."""
    partitions.create(connection, context.leaves)
    for batch in documents.stream_documents(connection, context.collection_id, doc_ids):
        rows = steps.sign_documents(context, batch)
        signatures.write_signatures(connection, context.leaves, rows, rows.doc_ids)


def test_a_build_signs_what_is_not_signed_yet(database_url: str) -> None:
    fill(database_url)
    with Index.connect(database_url) as index:
        context = context_of(index)
        with index.database.transaction() as connection:
            sign(connection, context, [2, 3, 17, COUNT])
        build.build(index.database.engine, context, silent)
        assert pairs_of(index.database, 1) == jaccard_pairs(texts_of(index.database), 0.5)
        assert index.stats()["indexed"] == COUNT
