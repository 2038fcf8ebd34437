"""nearsim.candidates and the worked query return what the product compares, for every sketch family."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any, LiteralString

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

from docs.generate import QUERIES
from nearsim_db import Document, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.indexing.steps.search import search_candidates, search_full_buckets
from nearsim_db.similarity.arrays import flat, lengths
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.linked_pairs import find_full_buckets, linked_pairs
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.selection import some
from tests.sql.test_families import RECIPES as FAMILIES

pytestmark = pytest.mark.each_major

Candidates = dict[tuple[int, int], int]

_XOR = [
    "sketch.family=minhash",
    "bands.hash=xor",
    "bands.count=40",
    "bands.rows=3",
    "match.min_shared_bands=3",
]
# For hyperplane, bands in which more than 64 of the edited copies are equal; with a narrow width there are none.
RECIPES = {name: rules for name, rules in FAMILIES.items() if name != "narrow"} | {
    "hyperplane": ["sketch.family=hyperplane", "sketch.k=200", "bands.count=40", "bands.rows=5"],
    "signs": [*FAMILIES["signs"], "bands.count=100", "bands.rows=5"],
    "xor with a minimum": _XOR,
    "two groups": ["sketch.k=128", "match.amplification=and(2, or(20, and(3)))"],
    "all of some": ["sketch.k=128", "match.amplification=at_least(2, 4, at_least(3, 8, and(2)))"],
    "many bands": ["sketch.k=512", "bands.count=250", "bands.rows=2", "match.min_shared_bands=9"],
    "winnow": [
        "sketch.family=winnow",
        "match.passage=8",
        "match.min_shared_bands=2",
        "match.ignore_common=0",
    ],
    "rare": ["sketch.family=rare", "sketch.k=40", "match.threshold=0.1"],
    "ids with a minimum": ["sketch.family=bottom_k", "sketch.k=32", "match.amplification=at_least(4, 20)"],
}
CASES = [
    ("two groups", 8),
    ("xor with a minimum", 8),
    ("bottom_k", 8),
    ("winnow", 8),
    ("fast_similarity", 0),
    ("many bands", 64),
]
CASES += [case for name in RECIPES for limit in (8, 64, 0) if (case := (name, limit)) not in CASES]


def write_documents() -> list[Document]:
    """120 copies of a text, mostly edited towards its end, 12 of another, twins, single texts and an empty one."""
    rng = random.Random(11)
    words = [f"word{number}" for number in range(400)]
    found = [Document("empty", body=" ?! ")]
    for family, size in enumerate((120, 12, 1, 1, 1)):
        text = rng.choices(words, k=60)
        for number in range(size):
            edited = list(text)
            for _ in range(rng.choice((0, 1, 2, 3, 9))):
                edited[rng.randrange(40, 60)] = rng.choice(words)
            if rng.random() < 0.2:
                edited[rng.randrange(40)] = rng.choice(words)
            found.append(Document(f"{family} {number}", body=" ".join(edited)))
    return rng.sample(found, len(found))


@pytest.fixture
def index(database_url: str) -> Iterator[Index]:
    with Index.connect(database_url, collection="demo") as index:
        yield index


@pytest.mark.parametrize(("name", "limit"), some(CASES, "every family with every bucket limit", kept=3))
def test_candidates_are_those_of_the_product(index: Index, name: str, limit: int) -> None:
    recipe = override(Recipe(), [*RECIPES[name], f"match.bucket_limit={limit}"])
    index.create_profile("default", recipe)
    index.add(write_documents())
    expected, linked = by_brute_force(index)
    assert 0 < len(expected) <= linked
    assert compared(index) == expected
    assert compared_in_memory(index) == (expected, linked)
    assert searched(index) == expected
    assert ask(index, "SELECT * FROM nearsim.candidates('demo', 'default')") == expected
    assert ask(index, (QUERIES / "self_join.sql").read_bytes()) == expected
    assert index.stats()["candidates_per_document"] == round(len(expected) / index.stats()["heads"], 2)


def ask(index: Index, query: LiteralString | bytes) -> Candidates:
    """The rows of a query."""
    with index.database.engine.begin() as connection:
        rows = connection.execute(query).fetchall()
    found = {(int(str(left)), int(str(right))): int(str(shared)) for left, right, shared in rows}
    assert len(found) == len(rows) and all(left < right for left, right in found)
    return found


def heads_of(index: Index) -> tuple[Encoder, list[int], NDArray[Any]]:
    """The recipe's encoder, and the stored heads with their sketches."""
    live = index.serving()
    encoder = live.context.encoder
    with index.database.engine.begin() as connection:
        tables = live.context.tables(connection)
        ((doc_ids, _),) = tables.signatures.stream_head_digests(1_000_000)
        found = tables.signatures.read_sketches(doc_ids, encoder.family)
    return encoder, found.doc_ids.tolist(), found.sketches


def by_brute_force(index: Index) -> tuple[Candidates, int]:
    """The candidates by the definition of how-it-works.md, and the number of linked pairs."""
    encoder, doc_ids, sketches = heads_of(index)
    limit, amplification = encoder.profile.recipe.match.bucket_limit, encoder.profile.amplification
    found_keys = encoder.band_keys(sketches)
    ends = np.cumsum(lengths(found_keys))[:-1]
    keys = dict(zip(doc_ids, [own.tolist() for own in np.split(flat(found_keys), ends)], strict=True))
    bands = encoder.profile.bands
    buckets = {doc_id: set(own) for doc_id, own in keys.items()}
    places: dict[tuple[int, int], int] = {}
    sizes: Counter[int] = Counter()
    for doc_id in sorted(keys):
        for key in keys[doc_id]:
            places[key, doc_id] = sizes[key]
            sizes[key] += 1
    assert max(sizes.values()) > limit
    found, linked = {}, 0
    for left, right in combinations(sorted(keys), 2):
        matched = [key in buckets[right] for key in keys[left]]
        shared = [key for key, is_equal in zip(keys[left], matched, strict=True) if is_equal]
        if not any(limit == 0 or places[key, left] < limit for key in shared):
            continue
        linked += 1
        if amplification.evaluate(np.array([matched + [False] * (bands - len(matched))]))[0]:
            found[left, right] = len(shared)
    return found, linked


def compared(index: Index) -> Candidates:
    """What the product compares: linked pairs, with their shared bands counted from the sketches."""
    encoder, doc_ids, sketches = heads_of(index)
    live = index.serving()
    with index.database.engine.begin() as connection:
        blocks = live.context.tables(connection).bands.stream_links(
            live.context.bucket_limit, (-(2**63), 2**63 - 1)
        )
        pairs = [np.stack((one.left, one.right), axis=1) for one in blocks]
        linked = np.unique(np.concatenate([np.zeros((0, 2), np.int64), *pairs]), axis=0)
    rows = np.searchsorted(doc_ids, linked)
    shared, enough = encoder.match_bands(sketches[rows[:, 0]], sketches[rows[:, 1]])
    kept = zip(linked[enough].tolist(), shared[enough].tolist(), strict=True)
    return {(left, right): amount for (left, right), amount in kept}


def compared_in_memory(index: Index) -> tuple[Candidates, int]:
    """What `dedupe` compares, and the number of linked pairs: the same relation over keys in memory."""
    encoder, doc_ids, sketches = heads_of(index)
    limit, rows = encoder.profile.recipe.match.bucket_limit, np.array(doc_ids)
    found, linked = Candidates(), 0
    keys = encoder.band_keys(sketches)
    full = find_full_buckets(keys, limit)
    assert (full.links_left_out, len(full.rows.keys)) == bucket_figures(index)
    for left, right in linked_pairs(keys, limit, full, encoder.backend):
        shared, enough = encoder.match_bands(sketches[left], sketches[right])
        pairs = zip(
            rows[left[enough]].tolist(), rows[right[enough]].tolist(), shared[enough].tolist(), strict=True
        )
        found |= {(one, other): amount for one, other, amount in pairs}
        linked += len(left)
    return found, linked


def bucket_figures(index: Index) -> tuple[int, int]:
    """Links left out and buckets over the limit, counted from the stored rows."""
    figures = index.stats(recount=True)
    return figures["links_left_out"], figures["buckets_over_limit"]


def searched(index: Index) -> Candidates:
    """What a worker compares that searches for every head."""
    encoder, doc_ids, sketches = heads_of(index)
    context = index.serving().context
    with index.database.engine.begin() as connection:
        found, anchors, _ = search_candidates(connection, context, doc_ids)
        parts = [search_full_buckets(connection, context, one, 0, 10_000) for one in anchors.tolist()]
    linked = np.unique(np.sort(np.concatenate([found, *parts]), axis=1), axis=0)
    linked = linked[linked[:, 0] != linked[:, 1]]
    rows = np.searchsorted(doc_ids, linked)
    shared, enough = encoder.match_bands(sketches[rows[:, 0]], sketches[rows[:, 1]])
    kept = zip(linked[enough].tolist(), shared[enough].tolist(), strict=True)
    return {(left, right): amount for (left, right), amount in kept}


STRICT = ["bands.count=32", "bands.rows=4", "match.min_shared_bands=20", "match.bucket_limit=64"]


@pytest.mark.slow("several builds")
def test_the_live_generation_answers_after_a_reindex(index: Index) -> None:
    index.create_profile("default", override(Recipe(), STRICT))
    index.add(write_documents())
    before, _ = by_brute_force(index)
    assert ask(index, "SELECT * FROM nearsim.candidates('demo', 'default')") == before
    generations = Reindex(index.database, index.collection)
    generations.start(settings=["match.min_shared_bands=1"])
    generations.promote()
    after, _ = by_brute_force(index)
    assert len(after) > len(before) > 0
    for query in (
        "SELECT * FROM nearsim.candidates('demo', 'default')",
        "SELECT * FROM nearsim.candidates()",
        "SELECT * FROM nearsim.candidates(collection => NULL, profile => NULL)",
        (QUERIES / "self_join.sql").read_bytes(),
    ):
        assert ask(index, query) == after


def test_what_cannot_be_answered_is_an_error(index: Index) -> None:
    index.create_profile("one", Recipe())
    index.add(write_documents()[:3])
    index.create_profile("two", Recipe())
    for call, error in (
        ("candidates('nowhere')", psycopg.errors.NoDataFound),
        ("candidates('demo')", psycopg.errors.AmbiguousParameter),
        ("candidates()", psycopg.errors.AmbiguousParameter),
        ("candidates('demo', NULL)", psycopg.errors.AmbiguousParameter),
        ("candidates('demo', 'no')", psycopg.errors.NoDataFound),
    ):
        refused(index, call, error)
    change(index, "UPDATE nearsim.generation SET state = 'retired'")
    refused(index, "candidates('demo', 'one')", psycopg.errors.ObjectNotInPrerequisiteState)
    change(index, "INSERT INTO nearsim.collection (name) VALUES ('other')")
    refused(index, "candidates()", psycopg.errors.AmbiguousParameter)


def refused(index: Index, call: str, error: type[psycopg.Error]) -> None:
    """A call ends with this error."""
    with pytest.raises(error):
        ask(index, f"SELECT nearsim.{call}".encode())


def change(index: Index, command: LiteralString) -> None:
    """Run a command."""
    with index.database.engine.begin() as connection:
        connection.execute(command)
