"""Dropping an index: sessions do not wait, and nothing stays behind."""

import pytest

from nearsim_db import Document, Index
from nearsim_db.errors import NotFoundError
from nearsim_db.indexing.drop_generation import delete_collection
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.driver import Engine
from nearsim_db.store.driver.statements import run
from nearsim_db.store.generations.generation_rows import list_generations

pytestmark = [pytest.mark.each_major, pytest.mark.usefixtures("own_tables")]

STORIES = [Document(f"d{number}", body="one two three four five six seven") for number in range(4)]
LEAVES = (
    "SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    "WHERE nspname = 'nearsim_index' AND relname ~ '_[0-9]+$' AND relkind = 'r'"
)


def leaf_tables(engine: Engine) -> int:
    """How many tables of generations there are."""
    with engine.connect() as connection:
        return int(run(connection, LEAVES).value())


def test_deleting_a_profile_keeps_documents_and_other_profiles(database_url: str, engine: Engine) -> None:
    with Index.connect(database_url, profile="words") as index:
        index.create_profile("words", Recipe())
        index.create_profile("letters", override(Recipe(), ["shingle.scheme=char", "shingle.k=5"]))
        index.add(STORIES)
        assert leaf_tables(engine) == 4
        index.delete_profile("letters")
        assert leaf_tables(engine) == 2
        assert len(list(index.pairs())) == 6
        with pytest.raises(NotFoundError, match="letters"):
            index.delete_profile("letters")


def test_deleting_a_collection_removes_everything_in_it(database_url: str, engine: Engine) -> None:
    with Index.connect(database_url) as index, Index.connect(database_url, collection="other") as other:
        index.add(STORIES)
        other.add(STORIES)
        assert delete_collection(index.database, "default") == 4
        assert leaf_tables(engine) == 2
        assert len(list(other.pairs())) == 6
        with engine.connect() as connection:
            assert run(connection, "SELECT count(*) FROM nearsim.document").value() == 4


def test_deletion_does_not_wait_for_readers_of_other_collections(database_url: str, engine: Engine) -> None:
    with Index.connect(database_url) as index, Index.connect(database_url, collection="other") as other:
        index.add(STORIES)
        other.add(STORIES)
        reading = other.pairs()
        next(reading)
        delete_collection(index.database, "default")
        assert len(list(reading)) == 5


def test_an_interrupted_drop_is_finished(database_url: str, engine: Engine) -> None:
    with Index.connect(database_url) as index:
        index.add(STORIES)
        with index.database.transaction() as connection:
            (generation,) = list_generations(connection, index._get_collection().collection_id)
        with engine.connect(autocommit=True) as connection:
            generation.tables(connection).detach()
        index.delete_profile("default")
        assert leaf_tables(engine) == 0
