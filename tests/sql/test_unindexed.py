"""Functions on documents that are not indexed yet, and on collections without any."""

from typing import Any, LiteralString

import psycopg
import pytest

from nearsim_db import Index
from tests.builders.command_line import STORM, STORM_AGAIN

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
        assert reader.execute(candidates).fetchall() == []
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
