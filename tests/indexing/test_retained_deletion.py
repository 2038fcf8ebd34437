"""Documents that leave the window are deleted, where the recipe says so."""

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.errors import RecipeError
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.database import Database
from tests.indexing.test_index_model import clusters
from tests.indexing.test_retention import BASE, NEAR_COPY, WINDOW, ago, indexed, pass_time

DELETING = [*WINDOW, "retain.delete=true"]


def stored(database_url: str) -> set[str]:
    """The documents of all collections."""
    with psycopg.connect(database_url) as connection:
        return {row[0] for row in connection.execute("SELECT external_id FROM nearsim.document")}


def dated(names: str) -> list[Document]:
    """Near-copies of one text, the first one day old, each other two days older."""
    return [
        Document(name, body=f"{NEAR_COPY} {name}", published_at=ago(1 + 2 * at))
        for at, name in enumerate(names)
    ]


def test_documents_that_leave_the_window_are_deleted_for_all_profiles(database_url: str) -> None:
    with Index.connect(database_url, collection="feed") as index:
        index.create_profile("default", override(Recipe(), DELETING))
        index.create_profile("every", override(Recipe(), BASE))
        index.add(dated("abcdef"))
        assert stored(database_url) == set("abcde") and indexed(database_url) >= set("abcde")
        pass_time(database_url, 4)
        index.build()
        index.build()
        assert stored(database_url) == indexed(database_url) == set("abc")
        assert clusters(index) == fresh_clusters(database_url, "abc")
        with Index.connect(database_url, collection="feed", profile="every") as every:
            assert {name for one in every.clusters() for name in one.members} == set("abc")


def fresh_clusters(database_url: str, names: str) -> object:
    with Index.connect(database_url, collection="fresh") as index:
        index.create_profile("default", override(Recipe(), BASE))
        index.add(dated(names))
        return clusters(index)


def test_a_generation_that_is_not_live_deletes_nothing(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), BASE))
        index.add(dated("abcdef"))
    with Database.connect(database_url) as database:
        reindex = Reindex(database, "default")
        started = reindex.start(None, ["retain.age=4 days", "retain.delete=true"])
        assert stored(database_url) == set("abcdef")
        reindex.promote(started.generation_id)
    with Index.connect(database_url) as index:
        index.build()
    assert stored(database_url) == set("ab")


def test_deletion_requires_an_age() -> None:
    with pytest.raises(RecipeError, match=r"retain\.delete .* retain\.age"):
        override(Recipe(), ["retain.delete=true"])
