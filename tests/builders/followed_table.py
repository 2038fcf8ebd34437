"""An application's table, the collection attached to it, and a collection that ingested the same rows."""

import random

from nearsim_db import Document, Index
from nearsim_db.admin import attach
from nearsim_db.indexing.drop_generation import delete_collection
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from tests.builders.workers import Application

RECIPE = override(Recipe(), ["match.threshold=0.5", "sketch.k=32", "cluster.keep=longest"])
PLAIN = "CREATE TABLE story (id bigint PRIMARY KEY, headline text, body text, seen integer DEFAULT 0)"
PARTITIONED = """
CREATE TABLE story (id bigint PRIMARY KEY, headline text, body text, seen integer DEFAULT 0) PARTITION BY RANGE (id);
CREATE TABLE story_low PARTITION OF story FOR VALUES FROM (MINVALUE) TO (20);
CREATE TABLE story_high PARTITION OF story FOR VALUES FROM (20) TO (40)
"""
LATER_PARTITION = "CREATE TABLE story_rest PARTITION OF story DEFAULT"
TRIGGERS = (
    "SELECT coalesce(string_agg(format('%s %s %s', tgrelid::regclass, tgname, tgenabled), ', '), '') FROM pg_trigger "
    "JOIN pg_class ON pg_class.oid = tgrelid WHERE NOT tgisinternal "
    "AND relnamespace NOT IN ('nearsim'::regnamespace, 'pg_catalog'::regnamespace) "
    "AND (relnamespace <> 'nearsim_index'::regnamespace OR relname ~ '_[0-9]+$')"
)
CATALOG = """
SELECT format('%s %s %s %s', relacl, reloptions, relhastriggers AND EXISTS (SELECT FROM pg_trigger WHERE tgrelid = oid),
    (SELECT count(*) FROM pg_depend WHERE refobjid = oid))
FROM pg_class WHERE oid = CAST('story' AS regclass)
"""
COLUMNS = Columns("id", "body", title="headline")


def attached(database: Database, collection: str | None = None, columns: Columns = COLUMNS) -> Index:
    """Attach a collection to the table and index its rows."""
    result = attach.attach_table(database, "story", columns, collection)
    index = Index(database, result.collection)
    attach.ingest_table(index, "default", RECIPE)
    return index


def words(family: int, member: int) -> str:
    """A text that is similar to the other texts of its family."""
    return " ".join(
        [*(f"family{family}word{at}" for at in range(12)), *(f"own{member}" for _ in range(member % 5))]
    )


def write(app: Application, number: int, text: str) -> None:
    """Insert a row."""
    app.execute(
        "INSERT INTO story (id, headline, body) VALUES (%s, %s, %s)", (number, f"title {number}", text)
    )


def pairs(index: Index) -> set[frozenset[str]]:
    """The pairs of the index, as sets of two ids."""
    return {frozenset((pair.left, pair.right)) for pair in index.pairs()}


def clusters(index: Index) -> set[tuple[str | None, frozenset[str]]]:
    """The clusters of the index: survivor and members."""
    return {(cluster.survivor, frozenset(cluster.members)) for cluster in index.clusters()}


def lasting_clusters(index: Index, app: Application) -> set[tuple[int, frozenset[str]]]:
    """The clusters, each as the length of its survivor and its members.

    This form does not depend on the order of the documents, which may differ between the two collections: of documents
    of equal length, the earliest survives.
    """
    rows = app.execute("SELECT id, length(concat(headline, body)) FROM story").fetchall()
    length = {str(number): int(str(long)) for number, long in rows}
    return {(length[str(survivor)], members) for survivor, members in clusters(index)}


def twin(database: Database, app: Application) -> Index:
    """A collection that ingested the rows of the table."""
    rows = app.execute("SELECT id, headline, body FROM story ORDER BY id").fetchall()
    name = f"twin-{random.random()}"
    with Database.connect(database.engine.url) as copy:
        index = Index(copy, name)
        index.create_profile("default", RECIPE)
        index.add(Document(str(number), str(title), str(body)) for number, title, body in rows)
        index.build()
        return Index(database, name)


def assert_as_ingested(database: Database, app: Application, index: Index) -> None:
    """Assert that the index equals the index of a collection that ingested the same rows."""
    other = twin(database, app)
    assert pairs(index) == pairs(other)
    assert lasting_clusters(index, app) == lasting_clusters(other, app)
    # No pair is listed twice.
    assert len(pairs(index)) == len(list(index.pairs()))
    delete_collection(database, other.collection)
