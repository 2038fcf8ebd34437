"""Invariants of a drained index: each check yields violations."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache

import networkx

from nearsim_db.similarity.recipe import Recipe
from tests.endurance.stress.contents import Contents, Names, Text
from tests.endurance.stress.shingles import shingle_set

_EXAMPLES = 5
_NOTHING: frozenset[int] = frozenset()


def violations(
    living: Contents,
    fresh: Contents,
    written: Mapping[str, Text],
    large: Mapping[str, set[int]],
    recipe: Recipe,
) -> dict[str, dict[str, object]]:
    """Return every check that failed, with its count and a few examples; empty if all hold.

    `fresh` was built at once from the same documents, `written` are the documents that the writers left, and
    `large` has the buckets over the limit of each head of the fresh index.
    """
    stored, built = living.expanded(), fresh.expanded()
    found: dict[str, Iterator[object]] = {
        "documents not as written": wrong_documents(living, written),
        "signatures wrong": wrong_signatures(living, fresh),
        "band rows wrong": wrong_bands(living, fresh),
        "stored pairs not true": untrue_pairs(living, recipe),
        "twins not alike": false_twins(living, recipe),
        "pairs of the fresh build missing": iter(sorted(built - stored)),
        "pairs not in the fresh build, without a large bucket": unexcused(stored - built, fresh, large),
        "clusters not the components of the pairs": wrong_clusters(living, stored),
        "survivors wrong": wrong_survivors(living),
    }
    if stored == built:
        found["clusters not those of the fresh build"] = iter(living.partition() ^ fresh.partition())
        found["survivors not those of the fresh build"] = iter(living.survivors ^ fresh.survivors)
    listed = {name: list(wrong) for name, wrong in found.items()}
    return {name: _told(wrong) for name, wrong in listed.items() if wrong}


def _told(wrong: Sequence[object]) -> dict[str, object]:
    return {"count": len(wrong), "examples": [_plain(one) for one in wrong[:_EXAMPLES]]}


def _plain(value: object) -> object:
    return sorted(map(str, value))[:20] if isinstance(value, frozenset) else value


def wrong_documents(living: Contents, written: Mapping[str, Text]) -> Iterator[object]:
    """Yield documents that were lost, were not deleted, or do not have the text written last."""
    yield from (name for name in written.keys() | living.texts if written.get(name) != living.texts.get(name))


def wrong_signatures(living: Contents, fresh: Contents) -> Iterator[object]:
    """Yield documents that only one of the indexes has signed, or that only one finds without features."""
    for name in living.heads.keys() | fresh.heads:
        one, other = living.heads.get(name), fresh.heads.get(name)
        if (one is None, one == "") != (other is None, other == ""):
            yield name


def wrong_bands(living: Contents, fresh: Contents) -> Iterator[object]:
    """Yield documents with band rows that are not heads, and heads with another number of them than in the fresh
    build.
    """
    usual = max(fresh.bands.values(), default=0)
    heads = {name for name, head in living.heads.items() if name == head}
    yield from (
        name
        for name in heads | living.bands.keys()
        if living.bands.get(name, 0) != (usual if name in heads else 0)
    )


def untrue_pairs(living: Contents, recipe: Recipe) -> Iterator[object]:
    """Yield stored pairs whose counts differ from those of the texts, or that do not reach the threshold."""
    threshold = Fraction(str(recipe.match.threshold))

    @cache
    def shingles(name: str) -> frozenset[str]:
        return shingle_set(*living.texts.get(name, (None, None)), recipe)

    for (left, right), counts in living.pairs.items():
        one, other = shingles(left), shingles(right)
        true = len(one & other), len(one | other)
        if counts != true or not true[1] or Fraction(*true) < threshold:
            yield left, right, counts, true


def false_twins(living: Contents, recipe: Recipe) -> Iterator[object]:
    """Yield documents whose shingles differ from those of their head."""
    for name, head in living.heads.items():
        if head and head != name:
            one, other = (living.texts.get(which, (None, None)) for which in (name, head))
            if shingle_set(*one, recipe) != shingle_set(*other, recipe):
                yield name, head


def unexcused(extra: set[Names], fresh: Contents, large: Mapping[str, set[int]]) -> Iterator[object]:
    """Yield pairs missing in the fresh build although both documents' heads share no bucket over the limit."""
    for pair in sorted(extra):
        left, right = (large.get(fresh.heads.get(name, ""), _NOTHING) for name in pair)
        if left.isdisjoint(right):
            yield pair


def wrong_clusters(living: Contents, stored: set[Names]) -> Iterator[object]:
    """Yield clusters that are not components of the pairs with twins expanded, and components that are not
    clusters.
    """
    graph = networkx.Graph()
    graph.add_edges_from(stored)
    components = {frozenset(component) for component in networkx.connected_components(graph)}
    yield from components ^ living.partition()


def wrong_survivors(living: Contents) -> Iterator[object]:
    """Yield clusters that do not have exactly one survivor."""
    for cluster in living.partition():
        if len(cluster & living.survivors) != 1:
            yield cluster
