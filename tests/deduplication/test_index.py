"""The clusters of an index, and those of the same documents in files, are the clusters by definition."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations

import pytest

from nearsim_db import Document, Index, dedupe
from nearsim_db.similarity.recipe import Recipe, from_mapping
from tests.builders.plain_clusters import Evidence, Tie
from tests.builders.selection import some, some_combinations
from tests.builders.word_sets import similarity

THRESHOLD = 0.6
WORDS = [first + vowel + last for first in "bcdfgklm" for vowel in "aeiou" for last in "nrst"]
DAY = datetime(2026, 5, 1, tzinfo=UTC)
Clusters = set[tuple[str | None, frozenset[str]]]  # the survivor, and all members


def make_documents(seed: int) -> list[Document]:
    """Families of equal texts, chains of near copies and other numbers, of a few sources or none."""
    rng = random.Random(seed)
    bodies = []
    for _ in range(6):
        words = rng.choices(WORDS, k=30)
        bodies += [" ".join([*words, "in 1"])] * 3 + [" ".join([*words, "in 2"])] * 2
        for _ in range(4):
            words = list(words)
            words[rng.randrange(30)] = rng.choice(WORDS)
            bodies += [" ".join([*words, f"in {rng.choice('12')}"])] * rng.choice([1, 1, 2, 3])
    rng.shuffle(bodies)
    return [
        Document(f"d{at:02}", body=body, source=rng.choice(["a", "b", "c", None]), published_at=DAY)
        for at, body in enumerate(bodies)
    ]


def make_recipe(linkage: str, across: str, keep: str, numbers_differ: str) -> Recipe:
    """A recipe that misses no pair."""
    return from_mapping(
        {
            "bands": {"count": 64, "rows": 2},
            "match": {"threshold": THRESHOLD, "across": across},
            "cluster": {"linkage": linkage, "keep": keep, "numbers_differ": numbers_differ},
        }
    )


def clusters_by_definition(
    documents: Sequence[Document], recipe: Recipe, verdicts: Mapping[tuple[str, str], str]
) -> Clusters:
    """The clusters by brute force: under `match.across` equal texts are pairs if their sources differ."""
    is_across = recipe.match.across != "none"
    bodies = [document.body or "" for document in documents]
    head_of = {at: at if is_across else bodies.index(body) for at, body in enumerate(bodies)}
    pairs: dict[Tie, float] = {}
    for left, right in combinations(sorted(set(head_of.values())), 2):
        alike = similarity(bodies[left], bodies[right])
        counts = not is_across or documents[left].source != documents[right].source
        if alike >= THRESHOLD and counts:
            pairs[left, right] = alike

    names = [document.external_id for document in documents]
    evidence = Evidence(
        recipe.cluster,
        head_of,
        {at: body[-1] for at, body in enumerate(bodies)},
        {at: (document.source, DAY, len(document.body or "")) for at, document in enumerate(documents)},
        pairs,
        {(names.index(left), names.index(right)): verdict for (left, right), verdict in verdicts.items()},
        THRESHOLD,
    )
    members: dict[int, list[int]] = defaultdict(list)
    survivors: dict[int, int] = {}
    for at, (cluster, survives) in evidence.clusters().items():
        members[cluster].append(at)
        survivors |= {cluster: at} if survives else {}
    return {(names[survivors[one]], frozenset(names[at] for at in members[one])) for one in members}


def clusters_of_files(documents: Sequence[Document], recipe: Recipe) -> Clusters:
    names = [document.external_id for document in documents]
    members: dict[str, set[str]] = defaultdict(set)
    for removed in dedupe(documents, recipe=recipe).removed:
        assert removed.of is not None
        members[names[removed.of]] |= {names[removed.of], names[removed.row]}
    return {(survivor, frozenset(others)) for survivor, others in members.items()}


def clusters_of_index(index: Index) -> Clusters:
    return {(cluster.survivor, frozenset(cluster.members)) for cluster in index.clusters()}


@some_combinations(
    ("linkage", ["average", "representative", "connected"]),
    ("across", ["source", "none"]),
    ("numbers_differ", ["link", "keep-apart"]),
    ("keep", ["earliest", "central"]),
)
@pytest.mark.parametrize("seed", some(range(3), "every seed"))
def test_an_index_and_files_have_the_same_clusters(
    database_url: str, linkage: str, across: str, numbers_differ: str, keep: str, seed: int
) -> None:
    is_refused = (linkage, keep) == ("representative", "central")  # in an index
    recipe = make_recipe(linkage, across, "earliest" if is_refused else keep, numbers_differ)
    documents = make_documents(seed)
    expected = clusters_by_definition(documents, recipe, {})
    assert clusters_of_files(documents, recipe) == expected

    with Index.connect(database_url) as index:
        index.create_profile("default", recipe)
        index.add(documents[:-20])  # built
        index.add(documents[-20:])  # extended
        assert clusters_of_index(index) == expected

        # A pin and a veto of documents that are in one cluster, and of documents that are in none together.
        groups = [sorted(members) for _, members in expected]
        largest = max(groups, key=len)
        outside = next(one.external_id for one in documents if one.external_id not in largest)
        pinned, vetoed = (largest[0], outside), (largest[0], largest[1])
        index.pin(*pinned, "a reason")
        index.veto(*vetoed, "a reason")
        verdicts = {(min(pinned), max(pinned)): "pinned", (min(vetoed), max(vetoed)): "vetoed"}
        assert clusters_of_index(index) == clusters_by_definition(documents, recipe, verdicts)

        index.undo(*pinned, "a reason")
        index.undo(*vetoed, "a reason")
        assert clusters_of_index(index) == expected


@pytest.mark.parametrize("linkage", ["average", "representative"])
def test_equal_texts_of_one_source_are_no_pair(linkage: str) -> None:
    body = "the harbour master said that the old ferry would sail again before the end of the week"
    documents = [Document(name, body=body, source=name[0]) for name in ("a1", "a2", "b1")]
    recipe = make_recipe(linkage, "source", "earliest", "link")
    assert clusters_of_files(documents, recipe) == {("a1", frozenset({"a1", "b1"}))}
