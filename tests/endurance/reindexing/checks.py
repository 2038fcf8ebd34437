"""Invariants of a drained index, compared with one built from the same documents without load."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache

import networkx
import psycopg

from nearsim_db.admin.reindex import Reindex
from nearsim_db.store.database import Database
from tests.builders.plain_text import Rules, shingles
from tests.endurance.reindexing.contents import Contents, Names, Text, read_contents, read_large_buckets
from tests.endurance.reindexing.scenario import COLLECTION, PROFILE, World, command
from tests.endurance.reindexing.texts import recipe_after

_EXAMPLES = 5
_NOTHING: frozenset[int] = frozenset()
_LEFT = """
SELECT 'change', count(*) FROM nearsim.change HAVING count(*) > 0
UNION ALL SELECT stage, count(*) FROM nearsim.work GROUP BY stage
"""
_RULES = Rules(tokens="whitespace", unicode="none", case="lower", invisible="keep")


def check(
    world: World, generation_id: int, written: Mapping[str, Text]
) -> tuple[dict[str, int], dict[str, object]]:
    """Drain the queue, build the same documents again without load, and compare: figures and violations."""
    command(world.url, "worker", "--once", "--collection", COLLECTION, "--quiet")
    with psycopg.connect(world.url, autocommit=True) as connection:
        waiting = {str(stage): int(count) for stage, count in connection.execute(_LEFT)}
        with Database.connect(world.url) as database:
            built = Reindex(database, COLLECTION, PROFILE).start()
        living = read_contents(connection, world.collection_id, generation_id)
        fresh = read_contents(connection, world.collection_id, built.generation_id)
        large = read_large_buckets(connection, built.generation_id, recipe_after().match.bucket_limit)
    found: dict[str, object] = dict(violations(living, fresh, written, large))
    if waiting:
        found["work left"] = waiting
    stored, rebuilt = living.expanded(), fresh.expanded()
    figures = {
        "documents": len(living.texts),
        "pairs stored": len(stored),
        "pairs of the fresh build": len(rebuilt),
        "pairs beyond the fresh build": len(stored - rebuilt),
        "clusters": len(living.partition()),
        "documents in large buckets": len(large),
    }
    return figures, found


def violations(
    living: Contents,
    fresh: Contents,
    written: Mapping[str, Text],
    large: Mapping[str, set[int]],
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
        "stored pairs not true": untrue_pairs(living),
        "twins not alike": false_twins(living),
        "pairs of the fresh build missing": iter(sorted(built - stored)),
        "pairs not in the fresh build, without a large bucket": unexcused(stored - built, fresh, large),
        "clusters not the components of the pairs": wrong_clusters(living, stored),
        "survivors wrong": wrong_survivors(living),
    }
    if stored == built:
        found["clusters not those of the fresh build"] = iter(living.partition() ^ fresh.partition())
        found["survivors not those of the fresh build"] = iter(living.survivors ^ fresh.survivors)
    listed = {name: list(wrong) for name, wrong in found.items()}
    return {name: summary(wrong) for name, wrong in listed.items() if wrong}


def summary(wrong: Sequence[object]) -> dict[str, object]:
    """Return how many there are, and a few examples."""
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


def _shingles(text: Text) -> frozenset[str]:
    return frozenset(shingles("\n".join(part for part in text if part), _RULES))


def untrue_pairs(living: Contents) -> Iterator[object]:
    """Yield stored pairs whose counts differ from those of the texts, or that do not reach the threshold."""
    threshold = Fraction(str(recipe_after().match.threshold))

    @cache
    def shingles_of(name: str) -> frozenset[str]:
        return _shingles(living.texts.get(name, (None, None)))

    for (left, right), counts in living.pairs.items():
        one, other = shingles_of(left), shingles_of(right)
        true = len(one & other), len(one | other)
        if counts != true or not true[1] or Fraction(*true) < threshold:
            yield left, right, counts, true


def false_twins(living: Contents) -> Iterator[object]:
    """Yield documents whose shingles differ from those of their head."""
    for name, head in living.heads.items():
        if head and head != name:
            one, other = (living.texts.get(which, (None, None)) for which in (name, head))
            if _shingles(one) != _shingles(other):
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
