"""Passages of stored documents: of any profile of texts, and in explanations."""

import random
from datetime import UTC, datetime

import pytest

from nearsim_db import Document, Index
from nearsim_db.errors import InputError, NotFoundError
from nearsim_db.search.queries import passages_in
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
        explained = index.why("longer", "story")
        assert explained.passages == ((found,) if profile == "held" else ())
        assert explained.left.text[found.left.start : found.left.end] == STORY
        assert explained.right.text[found.right.start : found.right.end] == STORY
        assert [one.equal for one in index.passages("alone", "longer")] == [len(FRAME[:800].split()) - 1] * 2
        assert index.passages("alone", "story") == []
    with pytest.raises(InputError, match="given twice"):
        index.passages("story", "story")
    with pytest.raises(NotFoundError, match="has no document 'absent'"):
        index.passages("story", "absent")


def test_rare_passages_are_first(index: Index) -> None:
    rng = random.Random(2)

    def words(count: int) -> str:
        return " ".join(f"w{rng.randrange(9_999)}" for _ in range(count))

    known, rare, rarest, names = words(80), words(30), words(40), [f"page{at}" for at in range(7)]
    held = from_mapping({"sketch": {"family": "winnow"}, "match": {"threshold": 0.1}})
    index.create_profile("default", held)
    index.add(Document(name, None, f"{words(40)} {known} {words(40)}") for name in names)
    index.add(
        Document(name, None, f"{words(40)} {known} {words(40)} {rare} {words(40)} {rarest} {words(50)}")
        for name in ("one", "other")
    )
    expected = [(2, 40), (2, 30), (9, 80)]
    assert [(each.documents, each.equal) for each in index.passages("one", "other")] == expected
    assert [(each.documents, each.equal) for each in index.why("other", "one").passages] == expected
    again = Document("given", None, f"{known} {words(40)} {rare}")
    assert [(each.documents, each.equal) for each in passages_in(index, again, "one")] == [(2, 30), (9, 80)]


def test_the_spread_of_passages_is_by_time(index: Index) -> None:
    index.create_profile(
        "default", from_mapping({"sketch": {"family": "winnow"}, "match": {"threshold": 0.2}})
    )
    words, other = STORY.split(), FRAME.split()
    head, tail = " ".join(words[:30]), " ".join(words[30:])
    middle = " ".join(other[:60])

    def day(number: int) -> datetime:
        return datetime(2024, 5, number, tzinfo=UTC)

    index.add(
        [
            Document("asked", "Both", f"{head} {middle} {tail}", published_at=day(2)),
            Document("later", None, f"{head} {' '.join(other[100:120])}", published_at=day(3)),
            Document("first", None, f"{' '.join(other[200:220])} {head}", "post", published_at=day(1)),
            Document("undated", None, tail),
            Document("alone", None, " ".join(other[300:380])),
        ]
    )
    one, two = index.spread("asked")
    assert (one.place.text, one.first_seen) == (head, "first")
    assert [(each.id, each.equal, each.share) for each in one.occurrences] == [
        ("first", 30, 1.0),
        ("asked", 30, 1.0),
        ("later", 30, 1.0),
    ]
    assert one.occurrences[0].place.text == head and one.occurrences[0].source == "post"
    assert (two.place.text, two.first_seen) == (tail, "asked")
    assert [each.id for each in two.occurrences] == ["asked", "undated"]
    assert [each.first_seen for each in index.spread("undated")] == ["asked"]
    assert index.spread("alone") == []
    with pytest.raises(NotFoundError, match="has no document 'absent'"):
        index.spread("absent")
