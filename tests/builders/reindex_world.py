"""A collection that is reindexed, and the pairs of its generations."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations

import psycopg

from nearsim_db import Database, Document, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.store.driver.statements import run
from nearsim_db.store.generations import generation_rows
from nearsim_db.store.generations.generation_rows import Generation
from tests.builders.relations import identifier

# Every band has one row, so no pair with a similarity of 1/3 or more is ever missed.
RECIPE = ["shingle.k=1", "shingle.scheme=word", "match.threshold=0.5", "bands.count=128", "bands.rows=1"]
LOWER = ["match.threshold=0.3"]


def words(number: int, edition: int = 0) -> str:
    """A text of a family of four. Two pairs of a family share 7 of 9 words, and one shares 4 of 12.

    Texts of different editions share no word.
    """
    family, member = divmod(number, 4)
    first = (0, 1, 5, 6)[member]
    return " ".join(f"f{family}e{edition}w{at}" for at in range(first, first + 8))


def stories(count: int, edition: int = 0) -> list[Document]:
    """Documents with these texts."""
    return [Document(f"d{number}", body=words(number, edition)) for number in range(count)]


def fill(url: str) -> None:
    """A collection of forty documents with a live generation."""
    with Index.connect(url) as index:
        from nearsim_db.similarity.recipe import Recipe, override

        index.create_profile("default", override(Recipe(), RECIPE))
        index.add(stories(40))


def jaccard_pairs(texts: dict[str, str], threshold: float) -> set[tuple[str, str]]:
    """The pairs of ids whose sets of words have a Jaccard similarity from the threshold on, in plain Python."""
    sets = {name: set(body.split()) for name, body in texts.items()}
    return {
        (min(a, b), max(a, b))
        for a, b in combinations(sets, 2)
        if len(sets[a] & sets[b]) >= threshold * len(sets[a] | sets[b])
    }


def texts_of(database: Database, collection: str = "default") -> dict[str, str]:
    """The texts of all documents of a collection."""
    query = (
        "SELECT external_id, body FROM nearsim.document JOIN nearsim.collection USING (collection_id) "
        "WHERE name = %(name)s"
    )
    with database.transaction() as connection:
        return {str(row[0]): str(row[1]) for row in connection.execute(query, {"name": collection})}


def pairs_of(database: Database, generation_id: int) -> set[tuple[str, str]]:
    """The pairs of a generation, live or not, including the pairs of twins."""
    query = (
        b"WITH member AS (SELECT head_id, external_id FROM nearsim.signature JOIN nearsim.document USING (doc_id) "
        b"    WHERE generation_id = %(id)s), "
        b"linked AS (SELECT left_id, right_id FROM nearsim.similar_pair WHERE generation_id = %(id)s "
        b"    UNION ALL SELECT head_id, head_id FROM member GROUP BY head_id) "
        b'SELECT DISTINCT least(l.external_id COLLATE "C", r.external_id), '
        b'    greatest(l.external_id COLLATE "C", r.external_id) FROM linked '
        b"JOIN member AS l ON l.head_id = left_id JOIN member AS r ON r.head_id = right_id "
        b"WHERE l.external_id <> r.external_id"
    )
    with database.transaction() as connection:
        return {(str(row[0]), str(row[1])) for row in connection.execute(query, {"id": generation_id})}


def states(database: Database) -> dict[int, str]:
    """The state of every generation."""
    with database.transaction() as connection:
        return {
            generation.generation_id: generation.state
            for generation in generation_rows.list_generations(connection)
        }


def coming(database: Database) -> Generation:
    """The newest generation."""
    with database.transaction() as connection:
        return generation_rows.list_generations(connection)[-1]


def stored(database: Database) -> set[int]:
    """The generations that have tables of their own, even detached ones, or rows in shared tables."""
    tables = (
        "SELECT relname FROM pg_class WHERE relnamespace = CAST('nearsim_index' AS regnamespace) "
        "AND relname ~ '_([0-9]+|shared)$' AND relkind = 'r'"
    )
    rows = psycopg.sql.SQL("SELECT DISTINCT generation_id FROM {}")
    generation_ids: set[int] = set()
    with database.transaction() as connection:
        for name in run(connection, tables).values():
            suffix = name.rpartition("_")[2]
            shared = suffix == "shared"
            generation_ids.update(
                run(connection, rows.format(identifier(name))).values() if shared else [int(suffix)]
            )
    return generation_ids


def leaf_tables(database: Database) -> int:
    """The number of tables of generations, including detached tables."""
    query = (
        "SELECT count(*) FROM pg_class WHERE relnamespace = CAST('nearsim_index' AS regnamespace) "
        "AND relname ~ '_[0-9]+$' AND relkind = 'r'"
    )
    with database.transaction() as connection:
        return int(run(connection, query).value())


class Killed(Exception):
    """Raised in place of a kill."""


class StoppedAt:
    """A progress callback that raises Killed at the first report of a step."""

    def __init__(self, step: str) -> None:
        self.step = step

    def __call__(self, step: str, done: int, total: int | None) -> None:
        """Raises Killed."""
        if step == self.step:
            raise Killed(step)


@contextmanager
def opened(url: str) -> Iterator[tuple[Database, Reindex]]:
    """A database, and the reindex operations of its collection."""
    with Database.connect(url) as database:
        yield database, Reindex(database, "default")


@contextmanager
def reader(url: str, *tables: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A session that has read these tables and leaves its transaction open."""
    with psycopg.connect(url, application_name="dashboard") as connection:
        for table in tables:
            connection.execute(psycopg.sql.SQL("SELECT * FROM {} LIMIT 1").format(identifier(table)))
        # The open transaction keeps its locks on the tables that it read.
        yield connection
        connection.rollback()
