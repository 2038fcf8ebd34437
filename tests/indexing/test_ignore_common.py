"""Shingles of too many documents and of given texts: left out of pairs, passages and files, the same incrementally."""

import random
from collections import Counter
from itertools import combinations

import pytest

from nearsim_db import Document, Index, dedupe
from nearsim_db.admin.reindex import Reindex
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.similarity.recipe import from_mapping, override

K, PERCENT, LEAST = 5, 5, 20
VOCABULARY = [f"word{number}" for number in range(3_000)]
RECIPE = {"sketch": {"family": "winnow"}, "match": {"threshold": 0.3, "bucket_limit": 10}}

Grams = set[tuple[str, ...]]


def words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choices(VOCABULARY, k=count))


RNG = random.Random(8)
FOOTER, LATER_FOOTER = words(RNG, 300), words(RNG, 300)


def pages(footer: str, count: int, name: str) -> dict[str, str]:
    """Pages with a footer, every sixth of which has one of four stories, twice as long as what is around it."""
    stories = [words(RNG, 120) for _ in range(4)]
    bodies = [words(RNG, 120) if at % 6 else stories[at // 6 % 4] for at in range(count)]
    return {
        f"{name}{at}": f"{words(RNG, 30)} {body} {words(RNG, 30)}\n\n{footer}"
        for at, body in enumerate(bodies)
    }


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    found = pages(FOOTER, 60, "page")
    return found | {"again": found["page0"], "footer alone": FOOTER, "short": "two words"}


def grams(text: str) -> Grams:
    own = text.split()
    return {tuple(own[at : at + K]) for at in range(max(1, len(own) - K + 1))}


def common_of(texts: dict[str, str]) -> Grams:
    """What more than PERCENT of the distinct texts have, and LEAST at least."""
    distinct = set(texts.values())
    counts = Counter(gram for text in distinct for gram in grams(text))
    return {
        gram for gram, count in counts.items() if count * 100 > PERCENT * len(distinct) and count >= LEAST
    }


def edited(rng: random.Random, text: str) -> str:
    """A text with one word in twelve changed."""
    return " ".join(words(rng, 1) if rng.random() < 1 / 12 else word for word in text.split())


@pytest.mark.slow("several builds")
def test_edited_copies_of_one_story_are_found_beside_a_footer_of_all_pages(index: Index) -> None:
    rng = random.Random(3)
    story = words(rng, 250)
    texts = {f"page{at}": f"{words(rng, 120)}\n\n{FOOTER}" for at in range(90)}
    texts |= {f"copy{at}": f"{edited(rng, story)}\n\n{FOOTER}" for at in range(40)}
    assert common_of(texts) > grams(FOOTER), "counts alone take the story for boilerplate"
    expected = true_pairs(texts, grams(FOOTER))
    assert len(expected) > 0.98 * (40 * 39 / 2)
    recipe = override(from_mapping(RECIPE), ["match.bucket_limit=0"])
    index.create_profile("held", recipe)
    index.add(Document(name, None, text) for name, text in texts.items())
    assert sum(one.shingles for one in index.common_fingerprints()) == len(grams(FOOTER))
    assert stored_pairs(index) == expected
    rows = [{"id": name, "text": text} for name, text in texts.items()]
    assert dedupe(rows, recipe=recipe).pairs == len(expected)


def true_pairs(texts: dict[str, str], common: Grams) -> set[tuple[str, str]]:
    sets = {name: grams(text) - common for name, text in texts.items()}
    return {
        (one, other)
        for one, other in combinations(sorted(sets), 2)
        if sets[one]
        and sets[other]
        and 10 * len(sets[one] & sets[other]) >= 3 * min(len(sets[one]), len(sets[other]))
    }


def stored_pairs(index: Index) -> set[tuple[str, str]]:
    return {(min(one.left, one.right), max(one.left, one.right)) for one in index.pairs()}


@pytest.mark.usefixtures("either_tables")
def test_a_footer_of_all_pages_makes_no_pairs_and_no_passages(index: Index, texts: dict[str, str]) -> None:
    common = common_of(texts)
    assert common == grams(FOOTER)
    expected = true_pairs(texts, common)
    assert 10 < len(expected) < 40
    index.create_profile("held", from_mapping(RECIPE))
    early = set(texts) - {"page0", "page7", "again", "short"}
    index.add(Document(name, None, texts[name]) for name in texts if name in early)
    assert [f"leaves out {len(common)} shingles" in one for one in index.warnings].count(True) == 1
    assert stored_pairs(index) == true_pairs({name: texts[name] for name in early}, common)
    index.add(Document(name, None, texts[name]) for name in texts if name not in early)
    assert stored_pairs(index) == expected
    stats = index.stats()
    assert (stats["common_shingles"], stats["links_left_out"], stats["no_features"]) == (len(common), 0, 1)
    assert verify_index(index.database, sample=None).is_sound
    partners = {one for pair in expected if "page6" in pair for one in pair} - {"page6"}
    assert {one.external_id for one in index.similar_to_text(texts["page6"])} == partners | {"page6"}
    [passage] = index.passages("page6", "page30")
    assert 120 <= passage.equal < 125
    assert not index.passages("page1", "page2") and not index.spread("page1")
    listed = index.common_fingerprints()
    assert sum(one.shingles for one in listed) == len(common)
    assert [one.documents for one in listed] == [61] * len(listed)
    assert listed[0].example in FOOTER
    rows = [{"id": name, "text": text} for name, text in texts.items()]
    assert dedupe(rows, recipe=from_mapping(RECIPE)).pairs == len(expected)


def test_what_is_left_out_is_determined_by_each_build(index: Index, texts: dict[str, str]) -> None:
    index.create_profile("held", from_mapping(RECIPE))
    index.add(Document(name, None, text) for name, text in texts.items())
    later = pages(LATER_FOOTER, 30, "later")
    index.add(Document(name, None, text) for name, text in later.items())
    every = texts | later
    assert {one for one in true_pairs(every, common_of(texts)) if "later1" in one} <= stored_pairs(index)
    assert stored_pairs(index) < true_pairs(every, common_of(texts)), "bucket_limit bounds the later footer"
    reindex = Reindex(index.database, "default", "held")
    reindex.start()
    reindex.promote()
    assert common_of(every) == grams(FOOTER) | grams(LATER_FOOTER)
    assert stored_pairs(index) == true_pairs(every, common_of(every))
    assert verify_index(index.database, sample=None).is_sound
