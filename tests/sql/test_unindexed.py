"""Documents that are not indexed yet, collections without any, and who published first."""

from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.command_line import STORM, STORM_AGAIN
from tests.builders.selection import some

INSERT: LiteralString = "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, %s, %s)"
CREATE_PROFILE: LiteralString = (
    "INSERT INTO nearsim.profile (collection_id, name) VALUES (1, 'default') ON CONFLICT DO NOTHING"
)


# Each with what it answers for the documents a and b before they are indexed.
BEFORE_INDEXING: list[tuple[LiteralString, list[tuple[Any, ...]]]] = [
    ("SELECT * FROM nearsim.similar_to('a')", []),
    ("SELECT * FROM nearsim.similar_to('a', 0.1, 1)", []),
    ("SELECT * FROM nearsim.similar_to('a', profile => 'default')", []),
    ("SELECT * FROM nearsim.similar_by_profiles('a')", []),
    ("SELECT * FROM nearsim.why('a', 'b')", []),
    ("SELECT * FROM nearsim.why_not('a', 'b')", []),
    ("SELECT * FROM nearsim.buckets_of(nearsim.document_named('a'))", []),
    (
        "SELECT keep, indexed FROM nearsim.dedupe(ARRAY(SELECT doc_id FROM nearsim.document ORDER BY doc_id))",
        [(True, False)] * 2,
    ),
]


COUNT_ALIKE = (
    "SELECT count(*) FROM nearsim.similar_to(%s)",
    "SELECT count(*) FROM nearsim.similar_by_profiles(%s)",
)
pytestmark = pytest.mark.each_major


@pytest.mark.usefixtures("either_tables")
def test_a_document_that_was_just_inserted_is_similar_to_nothing_yet(database_url: str) -> None:
    """In the inserting transaction, before any index exists and while one has not caught up."""
    told: list[str] = []
    with Index.connect(database_url) as index, psycopg.connect(database_url) as writer:
        writer.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))

        def ask(query: LiteralString, *parameters: object) -> tuple[list[tuple[Any, ...]], list[str]]:
            told.clear()
            return writer.execute(query, parameters).fetchall(), list(told)

        writer.execute("INSERT INTO nearsim.collection (name) VALUES ('default')")
        for name, text in (("a", STORM), ("b", STORM_AGAIN)):
            writer.execute(INSERT, (name, text))
        for query, nothing in BEFORE_INDEXING:
            found, (notice,) = ask(query)
            assert found == nothing, query
            assert notice == "document 1 is not indexed yet: collection 'default' has no live index"
        writer.commit()
        index.build()
        for query in COUNT_ALIKE:
            assert ask(query, "a") == ([(1,)], [])
        writer.execute(INSERT, ("c", STORM))
        writer.execute(INSERT, ("alone", "this text is like no other of them in any of its words"))
        unindexed = "the present text of document 3 is not indexed; nearsim.documents shows its state"
        for query in COUNT_ALIKE:
            assert ask(query, "c") == ([(0,)], [unindexed])
        writer.commit()
        index.build()
        for query in COUNT_ALIKE:
            assert ask(query, "c") == ([(2,)], [])
            assert ask(query, "alone") == ([(0,)], [])
        writer.execute(
            "INSERT INTO nearsim.work (generation_id, stage, doc_id)"
            " SELECT generation_id, 'search', 4 FROM nearsim.generation"
        )
        for query in COUNT_ALIKE:
            assert ask(query, "alone") == ([(0,)], [unindexed.replace("3", "4")])
        writer.execute("UPDATE nearsim.document SET body = 'another text' WHERE external_id = 'c'")
        for query in COUNT_ALIKE:
            assert ask(query, "c") == ([(2,)], [unindexed])


def test_a_collection_without_documents_answers_with_nothing(database_url: str) -> None:
    candidates: LiteralString = "SELECT * FROM nearsim.candidates()"
    combined: LiteralString = "SELECT * FROM nearsim.combined_clusters('default')"
    with psycopg.connect(database_url, autocommit=True) as reader:
        reader.execute("INSERT INTO nearsim.collection (name) VALUES ('default')")
        for _ in range(2):
            assert reader.execute(candidates).fetchall() == reader.execute(combined).fetchall() == []
            with pytest.raises(psycopg.errors.NoDataFound, match="has no profile 'other'"):
                reader.execute("SELECT * FROM nearsim.candidates(profile => 'other')")
            reader.execute(CREATE_PROFILE)
        reader.execute(INSERT, ("a", STORM))
        for query in (candidates, combined):
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has no live index yet"):
                reader.execute(query)


STORY = "the council voted on tuesday to close the old swimming bath at the end of the season after years of debate"
HARVEST = "apples and pears were late this year as the frost of april had taken most of the early blossom in the valley"
NOON = datetime(2024, 5, 31, 12, tzinfo=UTC)


# id, text, source, hours after noon (None: no date)
STORIES = [
    ("late", f"{STORY} and more", "wire", 5),
    ("first", STORY, "north", 0),
    ("tie", STORY, "south", 0),
    ("undated", f"{STORY} again", "wire", None),
    ("same source", f"{STORY} now", "north", 2),
    ("no source", f"{STORY} here", None, 3),
    ("pears a", HARVEST, "wire", None),
    ("pears b", HARVEST, "north", None),
    ("alone", "nothing is like this short text of its own kind in any way at all", "wire", 1),
]


@pytest.mark.parametrize("keep", some(["longest", "latest", "earliest"], "every policy"))
def test_the_earliest_date_decides(database_url: str, keep: str) -> None:
    with Index.connect(database_url, collection="news", profile="p") as index:
        index.create_profile("p", override(Recipe(), [f"cluster.keep={keep}", "match.threshold=0.5"]))
        index.add(
            Document(
                name,
                body=text,
                source=source,
                published_at=None if at is None else NOON + timedelta(hours=at),
            )
            for name, text, source, at in STORIES
        )
        sizes = sorted(len(one.members) for one in index.clusters())
    assert sizes == [2, 6]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE nearsim.document SET published_at = '-infinity' WHERE external_id = 'undated'"
        )
        rows = connection.execute(
            "SELECT external_id, first_external_id, first_source, delay, first_elsewhere "
            "FROM nearsim.first_publications WHERE collection = 'news' AND profile = 'p'"
        ).fetchall()
    hours = {name: at for name, _, _, at in STORIES}
    assert {row[0]: row[1:] for row in rows} == {
        name: ("first", "north", None if hours[name] is None else timedelta(hours=hours[name] or 0), elsewhere)
        for name, elsewhere in [
            ("late", True), ("tie", False), ("undated", False), ("same source", False), ("no source", False),
        ]
    }  # fmt: skip
