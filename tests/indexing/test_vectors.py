"""Vectors of documents: stored unchanged, compared in their current version, whoever writes them."""

from collections.abc import Iterator

import numpy as np
import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.errors import InputError
from nearsim_db.records import ReadDocument
from nearsim_db.search.answers import list_newest
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.documents import documents
from tests.builders.filled import address_of
from tests.builders.vector_world import alike, cosine, found, made_up, recipe
from tests.builders.workers import IDLE, Application, application, ask, running, wait_until

VECTORS = made_up()
SAME = b"""
UPDATE nearsim.document SET vector = (SELECT vector FROM nearsim.document WHERE external_id = %s) WHERE external_id = %s
"""
REFUSAL = "profile 'default' compares vectors, and this text has none"


def given(**changed: list[float]) -> list[Document]:
    """A document for each vector, the texts of which are all alike."""
    return [
        Document(name, body="the same text for all of them", vector=changed.get(name, vector))
        for name, vector in VECTORS.items()
    ]


def fill(url: str) -> None:
    """An index that compares vectors, of all of them."""
    with Index.connect(url) as index:
        index.create_profile("default", recipe())
        index.add(given())


# A database with that index.
database_url = address_of(fill)


@pytest.fixture
def other(database_url: str, index: Index) -> Iterator[Application]:
    """Another application."""
    with application(database_url) as connection:
        yield connection


def test_pairs_equal_brute_force(index: Index) -> None:
    expected = alike(VECTORS)
    assert len(expected) > len(VECTORS)
    assert found(index) == expected
    for pair in index.pairs():
        assert pair.similarity == pytest.approx(cosine(VECTORS[pair.left], VECTORS[pair.right]), abs=1e-11)


def test_vectors_are_stored_unchanged(index: Index) -> None:
    for name, vector in VECTORS.items():
        assert np.array(index.get(name)["vector"], np.float32).tolist() == vector.tolist()


def test_equal_vectors_are_unchanged_and_different_ones_updates(index: Index) -> None:
    summary = index.add(given())
    assert (summary.unchanged, summary.updated) == (len(VECTORS), 0)
    as_doubles = {name: [float(one) for one in vector] for name, vector in VECTORS.items()}
    assert index.add(given(**as_doubles)).unchanged == len(VECTORS)
    changed = [*as_doubles["v0-0"][:-1], 1e3]
    dry = index.ingest((ReadDocument(one, "f", 1) for one in given(**{"v0-0": changed})), dry_run=True)
    summary = index.add(given(**{"v0-0": changed}))
    assert (summary.unchanged, summary.updated) == (len(VECTORS) - 1, 1)
    assert (dry.unchanged, dry.updated) == (summary.unchanged, summary.updated)
    assert found(index) == alike({**VECTORS, "v0-0": np.array(changed, np.float32)})


def test_documents_added_without_a_vector_keep_theirs(index: Index) -> None:
    without = [Document(one.external_id, body=one.body) for one in given()]
    assert index.add(without).unchanged == len(VECTORS)
    assert index.add(without, on_duplicate="skip").unchanged == len(VECTORS)
    assert index.add([Document(one.external_id, body="another text") for one in without]).updated == len(
        VECTORS
    )
    assert found(index) == alike(VECTORS)


def test_an_update_of_a_vector_in_plain_sql_changes_its_pairs(index: Index, other: Application) -> None:
    other.execute(SAME, ("v1-0", "v0-0"))
    index.build()
    moved = {**VECTORS, "v0-0": VECTORS["v1-0"]}
    assert found(index) == alike(moved) != alike(VECTORS)


@pytest.mark.slow("starts a process")
def test_workers_index_vectors_and_refuse_texts(database_url: str, index: Index, other: Application) -> None:
    with running(database_url):
        other.execute(SAME, ("v1-0", "v0-0"))
        wait_until(other, IDLE)
        probe = ask(other, "SELECT nearsim.ask('a text', deadline => '20 seconds')")
        with pytest.raises(psycopg.errors.RaiseException, match=REFUSAL):
            other.execute(b"SELECT nearsim.similar_to_text(%s)", (probe,))
    assert found(index) == alike({**VECTORS, "v0-0": VECTORS["v1-0"]})


def test_without_a_usable_vector_a_document_has_no_features(index: Index, other: Application) -> None:
    unusable = ["NULL", "{}", "{0, 0, 0}", "{1, NULL}", "{NULL}", "{NaN, 1}", "{1, Infinity}"]
    names = [f"v{at}-1" for at in range(len(unusable))]
    for name, vector in zip(names, unusable, strict=True):
        written = None if vector == "NULL" else vector
        other.execute(b"UPDATE nearsim.document SET vector = %s WHERE external_id = %s", (written, name))
    index.build()
    assert index.stats()["no_features"] == len(unusable)
    for name in names:
        assert index.similar(name) == []
        assert "it has no vector that can be compared" in index.warnings[-1]
    assert found(index) == alike({name: one for name, one in VECTORS.items() if name not in names})


def test_lookup_by_vector(index: Index) -> None:
    question = VECTORS["v2-0"] + np.float32(0.01)
    matches = {one.external_id: one.similarity for one in index.check(Document("new", vector=question))}
    expected = {
        name: similarity for name, one in VECTORS.items() if (similarity := cosine(one, question)) >= 0.9
    }
    assert matches == pytest.approx(expected, abs=1e-11)
    assert {one.external_id for one in index.similar("v2-0")} == {
        name for name, one in VECTORS.items() if name != "v2-0" and cosine(one, VECTORS["v2-0"]) >= 0.9
    }
    assert index.check(Document("new", body="the same text for all of them")) == []
    with pytest.raises(InputError, match="the vector has nan at position 1"):
        index.check(Document("new", vector=[float("nan")]))


def test_near_duplicates_by_vector_are_skipped(index: Index) -> None:
    new = np.random.default_rng(9).normal(size=24)
    summary = index.add(
        [
            Document("copy", vector=VECTORS["v2-0"]),
            Document("new", vector=new),
            Document("new-copy", vector=new * 2),
        ],
        on_duplicate="skip",
    )
    assert (summary.inserted, summary.skipped) == (1, 2)
    assert [one.external_id for one in summary.duplicates] == ["copy", "new-copy"]


def test_lookup_by_text_is_refused(index: Index) -> None:
    with pytest.raises(InputError, match=REFUSAL):
        index.similar_to_text("the same text for all of them")


def test_text_and_vector_profiles_in_one_collection(index: Index) -> None:
    index.create_profile("texts", Recipe())
    with Index(index.database, index.collection, "texts") as texts:
        assert len(found(texts)) == len(VECTORS) * (len(VECTORS) - 1) // 2
        assert texts.check(Document("", body="the same text for all of them"))
    assert found(index) == alike(VECTORS)


def test_only_compared_columns_are_read(index: Index) -> None:
    collection_id = list_newest(index.database, index.collection)[0].collection_id
    with index.database.transaction() as connection:
        for doc_ids in (range(1, 10), range(1, 1_000)):
            for vectors in (False, True):
                for batch in documents.stream_documents(connection, collection_id, doc_ids, vectors=vectors):
                    assert {one.body is None for one in batch} == {vectors}
                    assert {one.vector is None for one in batch} == {not vectors}
                    assert all(one.vector is None or one.vector.dtype == np.float32 for one in batch)


def test_different_lengths_produce_a_warning(index: Index) -> None:
    index.add(
        [Document("a", vector=[1.0] * 3), Document("b", vector=[1.0] * 4), Document("c", vector=[1.0] * 4)]
    )
    assert "the vectors have different lengths: 4 (2 documents), 3 (1 document)" in index.warnings[-1]
