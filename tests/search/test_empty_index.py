"""An index without documents: queries answer with nothing."""

from pathlib import Path

import psycopg
import pytest

from nearsim_db import Deduper, Document, Index
from nearsim_db.errors import NotFoundError
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.command_line import STORM, STORM_AGAIN, STORM_LATER


def test_a_new_index_answers_with_nothing(database_url: str, tmp_path: Path) -> None:
    """Without a collection, without a profile, and without documents; documents that wait are an error."""
    with Index.connect(database_url) as index:
        _assert_empty(index, tmp_path)
        index.database.create_collection("default")
        _assert_empty(index, tmp_path)
        index.create_profile("mine", Recipe())
        for index.profile in (None, "mine"):
            _assert_empty(index, tmp_path)
        index.profile = "other"
        with pytest.raises(NotFoundError, match="has no profile 'other'"):
            index.check(Document("new", body=STORM))
        index.profile = None
        with psycopg.connect(database_url) as application:
            application.execute(
                "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, 'a', 'text')"
            )
        with pytest.raises(NotFoundError, match="is being built"):
            index.check(Document("new", body=STORM))


def test_an_unknown_collection_is_refused_in_a_database_without_any(database_url: str) -> None:
    with Index.connect(database_url, collection="typo") as index:
        for query in (index.pairs, index.clusters, index.stats, index.verdicts, index.events):
            with pytest.raises(NotFoundError, match="'typo' does not exist"):
                list(query())


def _assert_empty(index: Index, folder: Path) -> None:
    assert list(index.check(Document("new", body=STORM))) == []
    assert list(index.similar_to_text(STORM, limit=10)) == []
    assert [list(found) for _, found in index.check_many([Document("new", body=STORM)])] == [[]]
    streams = (index.pairs, index.clusters, index.events, index.verdicts)
    assert [list(stream()) for stream in streams] == [[]] * len(streams)
    assert (index.metric(), index.least_similarity()[1]) == ("jaccard", 0.7)
    assert index.stats()["documents"] == index.export(folder / "all.csv", "all") == 0
    assert (folder / "all.csv").read_text().startswith("id,")
    kept = Deduper(index).dedupe_external(["a", "b"])
    assert [(one.keep, one.indexed) for one in kept] == [(True, False)] * 2
    for unknown in (index.similar, index.cluster):
        with pytest.raises(NotFoundError, match="has no document 'a'"):
            list(unknown("a"))


@pytest.mark.parametrize(("keep", "kept"), [("latest", "c"), ("earliest", "a")])
def test_of_undated_documents_latest_keeps_the_last(database_url: str, keep: str, kept: str) -> None:
    texts = {"a": STORM, "b": STORM_AGAIN, "c": STORM_LATER}
    with Index.connect(database_url, collection=keep) as index:
        index.create_profile("default", override(Recipe(), [f"cluster.keep={keep}", "match.threshold=0.3"]))
        index.add(Document(name, body=text) for name, text in texts.items())
        (cluster,) = index.clusters()
    assert cluster.survivor == kept and set(cluster.members) == set(texts)
