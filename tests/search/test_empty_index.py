"""An index without documents answers with nothing, and so does a document that is not indexed yet."""

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.command_line import STORM, STORM_AGAIN, STORM_LATER, CommandLine


def test_a_new_index_answers_with_nothing(database_url: str) -> None:
    nearsim = CommandLine({"NEARSIM_DATABASE_URL": database_url, "NEARSIM_BACKEND": "numpy"})
    with Index.connect(database_url, collection="new") as index:
        index.create_profile("default", Recipe())
        assert not list(index.pairs()) and not list(index.clusters())
        found = index.check(Document("a", body=STORM))
        assert (list(found), found.metric, found.has_more) == ([], "jaccard", False)
        assert list(index.similar_to_text(STORM)) == []
    for command in (["pairs"], ["clusters"], ["similar", "--text", STORM]):
        assert nearsim.succeed(*command, "-c", "new", "--format", "jsonl").rows() == []
    (row,) = nearsim.succeed("check", "--text", STORM, "-c", "new", "--format", "jsonl").rows()
    assert row["matches"] == []


def test_similar_to_of_a_document_that_is_not_indexed_answers_nothing(database_url: str) -> None:
    insert = (
        "INSERT INTO nearsim.document (collection_id, external_id, body) "
        "SELECT collection_id, %s, %s FROM nearsim.collection RETURNING doc_id"
    )
    said: list[str] = []
    with Index.connect(database_url, collection="c") as index, psycopg.connect(database_url) as application:
        application.add_notice_handler(lambda notice: said.append(str(notice.message_primary)))
        index.create_profile("default", Recipe())
        for number, name in enumerate("ab"):
            row = application.execute(insert, (name, STORM)).fetchone()
            assert row is not None
            assert application.execute("SELECT FROM nearsim.similar_to(%s::bigint)", row).fetchall() == []
            assert application.execute("SELECT 1").fetchone() == (1,)
            application.commit()
            assert len(said) == number + 1 and f"document {row[0]} is not indexed yet" in said[-1]
            index.build()
        assert len(application.execute("SELECT FROM nearsim.similar_to(%s::bigint)", row).fetchall()) == 1
        assert len(said) == 2


@pytest.mark.parametrize(("keep", "kept"), [("latest", "c"), ("earliest", "a")])
def test_of_undated_documents_latest_keeps_the_last(database_url: str, keep: str, kept: str) -> None:
    texts = {"a": STORM, "b": STORM_AGAIN, "c": STORM_LATER}
    with Index.connect(database_url, collection=keep) as index:
        index.create_profile("default", override(Recipe(), [f"cluster.keep={keep}", "match.threshold=0.3"]))
        index.add(Document(name, body=text) for name, text in texts.items())
        (cluster,) = index.clusters()
    assert cluster.survivor == kept and set(cluster.members) == set(texts)
