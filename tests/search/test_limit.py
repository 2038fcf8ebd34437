"""Limits on matches against brute force: which are returned, and whether there are more."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nearsim_db import Document, Index, Recipe
from nearsim_db.errors import InputError
from nearsim_db.records import Matches
from nearsim_db.search.answers import most_similar_pairs
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import from_mapping
from tests.builders.word_sets import shingles

WORDS = [f"word{number}" for number in range(400)]
LIMITS = (1, 2, 3, 5, 8, 13, 40)

Figures = tuple[str, float, int, int]  # external id, similarity, intersection, union


def texts() -> dict[str, str]:
    """Two families of near-copies: some have the same text, so their doc_ids are not in the order of similarity."""
    rng = random.Random(5)
    bodies: dict[str, str] = {}
    for family in range(2):
        original = rng.choices(WORDS, k=60)
        copies = []
        for _ in range(8):
            copy = list(original)
            for place in rng.sample(range(60), rng.randint(0, 3)):
                copy[place] = rng.choice(WORDS)
            copies.append(" ".join(copy))
        bodies |= {f"f{family}-{at}": rng.choice(copies) for at in range(24)}
    return bodies


TEXTS = texts()


def recipe(verify: str = "exact") -> Recipe:
    """Enough bands to miss no pair at the threshold."""
    return from_mapping({"bands": {"count": 64, "rows": 2}, "match": {"threshold": 0.7, "verify": verify}})


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(resolve(recipe()))


@pytest.fixture
def index(database_url: str) -> Iterator[Index]:
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe())
        index.add(Document(name, body=body) for name, body in TEXTS.items())
        yield index


def matching(body: str, besides: str = "") -> list[Figures]:
    """All matches, the most similar first, then in the order in which they were added."""
    found = []
    for name, other in TEXTS.items():
        common, union = len(shingles(body) & shingles(other)), len(shingles(body) | shingles(other))
        if name != besides and 10 * common >= 7 * union:
            found.append((name, common / union, common, union))
    return sorted(found, key=lambda one: -one[1])


def first_by_estimate(encoder: Encoder, body: str, every: list[Figures], limit: int) -> list[Figures]:
    """The first matches by estimate, then by their head, then in the order in which they were added."""
    names, heads = list(TEXTS), {frozenset(shingles(other)): name for name, other in reversed(TEXTS.items())}
    sketches = encoder.encode([body, *TEXTS.values()]).sketches

    def key(one: Figures) -> tuple[float, int, int]:
        at = names.index(one[0])
        head = names.index(heads[frozenset(shingles(TEXTS[one[0]]))])
        return -float(encoder.family.estimate(sketches[:1], sketches[at + 1 : at + 2])[0]), head, at

    kept = sorted(every, key=key)[:limit]
    return [one for one in every if one in kept]


def figures(found: Matches) -> list[tuple[str, float, int | None, int | None]]:
    return [(one.external_id, one.similarity, one.intersection, one.union) for one in found]


@pytest.mark.slow("several builds")
def test_texts_match_in_the_order_of_estimates(index: Index, encoder: Encoder) -> None:
    seen = set()
    for name, body in list(TEXTS.items())[::5]:
        for changed, least in ((body, 0.0), (f"{body} and more", 0.0), (f"{body} and more", 0.9)):
            every = [one for one in matching(changed, name) if one[1] >= least]
            assert figures(index.check(Document(name, body=changed), least)) == every
            for limit in LIMITS:
                found = index.check(Document(name, body=changed), least, limit)
                assert figures(found) == first_by_estimate(encoder, changed, every, limit)
                assert found.has_more == (len(every) > limit)
                seen.add(found.has_more)
    assert seen == {True, False}
    assert not index.check(Document("new", body=TEXTS["f0-0"])).has_more


@pytest.mark.slow("several builds")
def test_a_stored_document_has_the_most_similar(index: Index) -> None:
    for limit in (0, -1):
        for refused in (index.similar_to_text, index.similar):
            with pytest.raises(InputError):
                refused("f0-0", limit=limit)
    for name, body in list(TEXTS.items())[::5]:
        every = matching(body, name)
        assert figures(index.similar(name)) == every
        for limit in LIMITS:
            found = index.similar(name, limit=limit)
            assert figures(found) == every[:limit]
            assert found.has_more == (len(every) > limit)


def test_deleted_documents_do_not_count(index: Index) -> None:
    """They are in the index until a worker removes them."""
    body = TEXTS["f0-0"]
    every = [name for name, *_ in matching(body)]
    gone = every[:3]
    with index.database.transaction() as connection:
        connection.execute("DELETE FROM nearsim.document WHERE external_id = ANY(%s)", (gone,))
    left = len(every) - len(gone)
    for limit in (left - 1, left, left + 1):
        found = index.similar_to_text(body, limit=limit)
        assert (len(found), found.has_more) == (min(limit, left), limit < left)
        assert {one.external_id for one in found} <= set(every[3:])


@pytest.mark.parametrize(
    "within",
    [{}, {"review": True}, {"min_similarity": 0.8}, {"max_similarity": 0.95}],
)
def test_a_table_reads_the_most_similar_pairs_only(index: Index, within: dict[str, Any]) -> None:
    """Those of deleted documents are in the index until a worker removes them, and do not count."""
    with index.database.transaction() as connection:
        connection.execute("DELETE FROM nearsim.document WHERE external_id LIKE '%-7'")
    every = sorted(index.pairs(**within), key=lambda one: -one.similarity)
    for limit in (*LIMITS, 400):
        page = most_similar_pairs(index, limit, **within)
        read = sorted(page.pairs, key=lambda one: -one.similarity)
        least = every[: min(limit, len(read))][-1:]
        assert sorted(read, key=str) == sorted(
            (one for one in every if len(read) == len(every) or one.similarity >= least[0].similarity),
            key=str,
        )
        assert len(read) >= min(limit, len(every))
        assert page.total == len(every)


def test_estimates_are_limited_like_similarities(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", recipe("estimate"))
        index.add(Document(name, body=body) for name, body in TEXTS.items())
        body = f"{TEXTS['f1-3']} and more"
        every = index.similar_to_text(body)
        for limit in LIMITS:
            found = index.similar_to_text(body, limit=limit)
            assert [one.similarity for one in found] == [one.similarity for one in every[:limit]]
            assert found.has_more == (len(every) > limit)


def count_round_trips(index: Index, limit: int | None, body: str, folder: Path) -> int:
    """The number of times that a lookup waits for the server: each time the driver sends a Sync message.

    Without the one by which it reads buckets on the nodes of a cluster.
    """
    trace = folder / "trace"
    with trace.open("w") as file:
        with index.database.reading() as connection:
            connected = connection.backend.pgconn
            connected.trace(file.fileno())
        index.similar_to_text(body, limit=limit)
        connected.untrace()
    messages = [line.split("\t") for line in trace.read_text().splitlines()]
    waits = sum(message[1:4:2] == ["F", "Sync"] for message in messages)
    return waits - index.serving().context.leaves.distributed


def test_a_lookup_takes_two_round_trips(index: Index, tmp_path: Path) -> None:
    """Also for texts that are not cached."""
    bodies = list(TEXTS.values())
    index.similar_to_text(bodies[-1], limit=20)
    assert count_round_trips(index, 20, bodies[0], tmp_path) == 2
    assert count_round_trips(index, 20, "nothing like it", tmp_path) == 1
    assert count_round_trips(index, 3, bodies[1], tmp_path) == 2


def test_candidates_known_not_to_match_are_not_read_again(index: Index, tmp_path: Path) -> None:
    """Some forty documents whose similarity is below the threshold by less than five standard errors."""
    rng = random.Random(6)
    original = rng.sample(WORDS, 60)
    changed = [[*original[:at], "another", *original[at + 1 :]] for at in rng.choices(range(60), k=40)]
    for words in changed:
        words[::12] = rng.choices(WORDS, k=5)
    index.add(Document(f"below {at}", body=" ".join(words)) for at, words in enumerate(changed))
    body = " ".join(original)
    index.similar_to_text(next(iter(TEXTS.values())), limit=3)  # prepares the statements
    assert count_round_trips(index, 3, body, tmp_path) > 3
    assert count_round_trips(index, 3, body, tmp_path) == 2
