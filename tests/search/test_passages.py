"""Passages of stored documents: of any profile of texts, and in explanations."""

import random

import pytest

from nearsim_db import Document, Index
from nearsim_db.errors import InputError, NotFoundError
from nearsim_db.similarity.recipe import Recipe, from_mapping, override

RNG = random.Random(8)
STORY = " ".join(f"word{RNG.randrange(999)}" for _ in range(60))
FRAME = " ".join(f"other{RNG.randrange(999)}" for _ in range(400))
DOCUMENTS = (
    Document("story", "Storm at sea", STORY),
    Document("longer", "Weather", f"{FRAME}. <b>{STORY}</b> {FRAME}"),
    Document("alone", None, FRAME[:800]),
)


def test_passages_are_places_in_the_explained_texts(index: Index) -> None:
    html = override(from_mapping({"sketch": {"family": "winnow"}}), ["normalise.html=true"])
    index.create_profile("held", html)
    index.create_profile("alike", Recipe())
    index.add(DOCUMENTS)
    for profile in ("held", "alike"):
        index.profile = profile
        [found] = index.passages("longer", "story")
        assert (found.equal, found.share) == (60, 1.0)
        assert (found.right.first_word, found.right.end_word) == (3, 63)
        assert found.left.text == found.right.text == STORY
        explained = index.explain("longer", "story")
        assert explained.passages == ((found,) if profile == "held" else ())
        assert explained.left.text[found.left.start : found.left.end] == STORY
        assert explained.right.text[found.right.start : found.right.end] == STORY
        assert [one.equal for one in index.passages("alone", "longer")] == [len(FRAME[:800].split()) - 1] * 2
        assert index.passages("alone", "story") == []
    with pytest.raises(InputError, match="given twice"):
        index.passages("story", "story")
    with pytest.raises(NotFoundError, match="has no document 'absent'"):
        index.passages("story", "absent")
