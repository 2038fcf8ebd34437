"""match.length_ratio: only pairs whose shorter text has a share of the longer one's shingles."""

from collections.abc import Iterator

import pytest

from nearsim_db import Document, Index, dedupe
from nearsim_db.errors import RecipeError
from nearsim_db.similarity.recipe import Recipe, from_mapping
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run

WORDS = [f"word{at}" for at in range(204)]
TEXTS = {"whole": " ".join(WORDS), "half": " ".join(WORDS[:104]), "quarter": " ".join(WORDS[:54])}  # k = 5


def recipe(ratio: float) -> Recipe:
    match = {"length_ratio": ratio, "ignore_common": 0}
    return from_mapping({"sketch": {"family": "winnow"}, "match": match})


@pytest.fixture
def index(database_url: str) -> Iterator[Index]:
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe(0.5))
        index.add(TEXTS.items())
        yield index


@pytest.mark.parametrize(("ratio", "pairs"), [(0, 3), (0.25, 3), (0.26, 2), (0.5, 2), (0.51, 0)])
def test_dedupe_compares_numbers_of_shingles(ratio: float, pairs: int) -> None:
    assert dedupe(list(TEXTS.items()), recipe=recipe(ratio)).pairs == pairs


def test_an_index_has_the_same_pairs(index: Index) -> None:
    assert {(one.left, one.right) for one in index.pairs()} == {("whole", "half"), ("half", "quarter")}


def test_lookups_leave_out_other_lengths(index: Index) -> None:
    found = index.check(Document("new", body=TEXTS["quarter"]))
    assert {one.external_id for one in found} == {"quarter", "half"}


def test_similar_documents_have_such_lengths_at_any_similarity(index: Index, connection: Connection) -> None:
    similar = "SELECT external_id FROM nearsim.similar_to('quarter', 0.0, 1)"
    assert run(connection, similar).values() == ["half"]


def test_why_not_names_the_numbers(index: Index, connection: Connection) -> None:
    reasons = [one for one in index.explain("whole", "quarter").reasons if one.kind == "unequal_sizes"]
    assert (
        "50 and 200 features, a ratio of 0.2500, which is below match.length_ratio = 0.5" in reasons[0].text
    )
    reason = run(connection, "SELECT reason FROM nearsim.why_not('whole', 'quarter')").value()
    assert reason == "they have 50 and 200 features, a ratio below 0.5 (match.length_ratio)"


@pytest.mark.parametrize(
    "other", [{"match": {"verify": "estimate"}}, {"sketch": {"family": "hyperplane", "input": "vector"}}]
)
def test_it_requires_texts_that_are_verified(other: dict[str, dict[str, str]]) -> None:
    match = {**other.get("match", {}), "length_ratio": 0.5}
    with pytest.raises(RecipeError, match="the ratio is decided on the features of texts"):
        from_mapping({**other, "match": match})
