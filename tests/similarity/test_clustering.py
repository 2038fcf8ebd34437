"""Components against networkx; stars, survivors and split-off members against their definitions."""

import random
from collections import Counter
from datetime import UTC, datetime
from itertools import combinations, pairwise, product

import networkx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nearsim_db.similarity import clustering
from nearsim_db.similarity.clustering import (
    average_clusters,
    choose_survivors,
    connected_components,
    find_split_off,
    star_clusters,
)
from nearsim_db.similarity.recipe import ClusterRules
from tests.builders.plain_clusters import Evidence, united
from tests.builders.selection import examples

Edges = list[tuple[int, int]]
MAY = datetime(2026, 5, 1, tzinfo=UTC)

any_id = st.integers(1, 25) | st.integers(1, 2**63 - 1)


def array(edges: Edges) -> NDArray[np.int64]:
    return np.array(edges, np.int64).reshape(-1, 2)


def labels(documents: NDArray[np.int64], smallest: NDArray[np.int64]) -> dict[int, int]:
    return dict(zip(documents.tolist(), smallest.tolist(), strict=True))


def components(edges: Edges) -> dict[int, int]:
    documents, smallest = connected_components(array(edges))
    assert [documents.dtype, smallest.dtype] == [np.dtype(np.int64)] * 2
    assert (np.diff(documents) > 0).all()
    return labels(documents, smallest)


def expected(edges: Edges) -> dict[int, int]:
    graph = networkx.Graph(edges)
    return {node: min(part) for part in networkx.connected_components(graph) for node in part}


@examples(300)
@given(edges=st.lists(st.tuples(any_id, any_id), max_size=30))
@example(edges=[])
@example(edges=[(7, 7)])
@example(edges=[(2, 1), (1, 2), (1, 2)])
@example(edges=[(3, 4), (1, 2), (4, 1)])
def test_random_graphs(edges: Edges) -> None:
    assert components(edges) == expected(edges)


@pytest.mark.parametrize("order", ["rising", "falling", "shuffled"])
def test_a_long_path(order: str) -> None:
    nodes = list(range(10_000))
    if order == "falling":
        nodes.reverse()
    elif order == "shuffled":
        random.Random(1).shuffle(nodes)
    edges = list(pairwise(nodes))
    random.Random(2).shuffle(edges)
    assert components(edges) == dict.fromkeys(range(10_000), 0)


Ranked = tuple[list[tuple[int, int]], list[tuple[int, int]], list[int]]


def similarities(pairs: Edges) -> NDArray[np.float64]:
    """Similarities of few values, so that many are equal."""
    return np.array([0.5 + sum(pair) % 4 / 10 for pair in pairs], np.float64)


@st.composite
def families(draw: st.DrawFn) -> Ranked:
    """Pairs of heads, twins as (head, twin), and all their documents, the best first."""
    heads = draw(st.lists(st.integers(1, 60), min_size=2, max_size=12, unique=True))
    ends = st.lists(st.sampled_from(heads), min_size=2, max_size=2, unique=True)
    pairs = [(min(two), max(two)) for two in draw(st.lists(ends, max_size=25))]
    named = draw(st.dictionaries(st.integers(61, 90), st.sampled_from(heads), max_size=10))
    twins = [(head, twin) for twin, head in named.items()]
    return pairs, twins, draw(st.permutations(sorted({one for edge in pairs + twins for one in edge})))


def stars(pairs: Edges, twins: Edges, order: list[int]) -> dict[int, int]:
    """Stars by definition."""
    families: dict[int, list[int]] = {}
    for doc_id in order:
        families.setdefault(next((head for head, twin in twins if twin == doc_id), doc_id), []).append(doc_id)
    tied = {frozenset(pair): alike for pair, alike in zip(pairs, similarities(pairs), strict=True)}
    members: dict[int, list[int]] = {}
    for head, family in families.items():
        alike = {one: tied.get(frozenset({one, head}), 0.0) for one in members}
        joined = max(alike, key=lambda one: alike[one], default=head)
        joined = joined if alike.get(joined) else head
        members.setdefault(joined, []).extend(family)
    return {doc_id: min(cluster) for cluster in members.values() for doc_id in cluster}


def star_labels(pairs: Edges, twins: Edges, order: list[int]) -> dict[int, int]:
    documents, smallest = star_clusters(
        array(pairs), similarities(pairs), array(twins), np.array(order, np.int64)
    )
    assert documents.tolist() == sorted(order)
    return labels(documents, smallest)


@examples(300)
@given(ranked=families())
@example(ranked=([], [], []))
@example(ranked=([], [(5, 3)], [3, 5]))
def test_stars_are_as_defined(ranked: Ranked) -> None:
    assert star_labels(*ranked) == stars(*ranked)


def test_stars_of_a_large_graph() -> None:
    graph = networkx.gnm_random_graph(2_000, 8_000, seed=1)
    order = [node for node in range(2_000) if graph.degree[node]]
    random.Random(1).shuffle(order)
    found = star_labels(list(graph.edges), [], order)
    assert found == stars(list(graph.edges), [], order)
    assert max(networkx.connected_components(graph), key=len) > set(found.values())


@given(data=st.data(), clusters=st.lists(st.integers(1, 5), max_size=20))
def test_best_document_of_each_cluster_survives(data: st.DataObject, clusters: list[int]) -> None:
    documents = [10 * place for place in range(len(clusters))]
    order = data.draw(st.permutations(documents))
    chosen = choose_survivors(*(np.array(one, np.int64) for one in (documents, clusters, order)))
    best = {clusters[doc_id // 10]: doc_id for doc_id in reversed(order)}
    assert {documents[row] for row in np.flatnonzero(chosen)} == set(best.values())


@given(edges=st.lists(st.tuples(st.integers(1, 25), st.integers(1, 25)), max_size=20), data=st.data())
def test_split_off_are_all_but_the_largest_part_of_each_cluster(edges: Edges, data: st.DataObject) -> None:
    named = data.draw(st.dictionaries(st.integers(1, 25), st.integers(1, 3), max_size=25))
    documents, clusters = sorted(named), [named[one] for one in sorted(named)]
    found = find_split_off(np.array(documents, np.int64), np.array(clusters, np.int64), array(edges))
    label = expected(edges)
    parts = Counter((named[one], label.get(one, one)) for one in documents)
    kept = {
        (named[one], label.get(one, one)) for one, apart in zip(documents, found, strict=True) if not apart
    }
    assert {cluster for cluster, _ in kept} == set(clusters) and len(kept) == len(set(clusters))
    assert all(
        parts[part] == max(size for other, size in parts.items() if other[0] == part[0]) for part in kept
    )
    assert found.sum() == len(documents) - sum(parts[part] for part in kept)


def test_components_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "_EDGES_AT_ONCE", 7)
    drawn = random.Random(3)
    edges = [(drawn.randrange(200), drawn.randrange(200)) for _ in range(120)]
    assert components(edges) == expected(edges)


def smallest_of(groups: list[set[int]]) -> dict[int, int]:
    """The smallest of each document's group."""
    return {one: min(group) for group in groups for one in group}


few = st.tuples(st.integers(1, 9), st.integers(1, 9))
vetoed = st.lists(few.filter(lambda pair: pair[0] != pair[1]), max_size=6)


@examples(300)
@given(edges=st.lists(few, max_size=25), vetoes=vetoed)
@example(edges=[(1, 2), (2, 3)], vetoes=[(3, 1)])
@example(edges=[(1, 2), (3, 4), (2, 3), (1, 5), (5, 4)], vetoes=[(1, 4)])
def test_edges_are_merged_in_order_unless_vetoed(edges: Edges, vetoes: Edges) -> None:
    found = labels(*clustering.constrained_components(array(edges), array(vetoes)))
    assert found == smallest_of(united({one for edge in edges for one in edge}, edges, vetoes))
    assert all(found.get(a, -a) != found.get(b, -b) for a, b in vetoes)


@examples(300)
@given(
    heads=st.lists(st.integers(1, 4), min_size=12, max_size=12),
    pairs=st.lists(st.tuples(few, st.sampled_from([0.5, 0.6, 0.7])), max_size=8),
    pins=st.lists(few, max_size=3),
    vetoes=vetoed,
)
def test_twins_without_a_verdict_need_only_one_edge(
    heads: list[int], pairs: list[tuple[tuple[int, int], float]], pins: Edges, vetoes: Edges
) -> None:
    """Documents 1 to 12, each linked to its twins and to all twins of the documents paired with its head."""
    families = sorted([one for one in range(1, 13) if heads[one - 1] == head] for head in set(heads))
    pinned = sorted({(min(pin), max(pin)) for pin in pins if pin[0] != pin[1]})
    vetoes = [veto for veto in vetoes if (min(veto), max(veto)) not in pinned]
    twins = sorted(tie for family in families for tie in combinations(family, 2))
    alike = {
        (min(a, b) % len(families), max(a, b) % len(families)): similarity for (a, b), similarity in pairs
    }
    alike = {(a, b): similarity for (a, b), similarity in alike.items() if a != b}
    tied = sorted(
        (-similarity, min(tie), max(tie))
        for (a, b), similarity in alike.items()
        for tie in product(families[a], families[b])
    )
    every = [*pinned, *twins, *((left, right) for _, left, right in tied)]

    judged = np.union1d(array(pinned), array(vetoes))
    stars = array([(family[0], twin) for family in families for twin in family[1:]])
    own = stars[np.isin(stars[:, 1], judged)]
    of_heads = array([(families[a][0], families[b][0]) for a, b in alike])
    expand_twins, rows = clustering.expand_twins(of_heads, own)
    ordered = clustering.sort_edges(
        expand_twins, np.array(list(alike.values()))[rows] if alike else np.zeros(0)
    )
    fewer = np.concatenate((clustering.binding_edges(array(pinned), stars, judged), ordered))
    found = labels(*clustering.constrained_components(fewer, array(vetoes)))
    assert {one: found.get(one, one) for one in range(1, 13)} == smallest_of(
        united(range(1, 13), every, vetoes)
    )


def test_a_star_has_no_vetoed_pair() -> None:
    pairs, order = array([(1, 2), (1, 3), (3, 4)]), np.arange(1, 5)
    alike = np.array([0.9, 0.8, 0.7])
    free = labels(*star_clusters(pairs, alike, array([]), order))
    assert free == {1: 1, 2: 1, 3: 1, 4: 4}
    parted = labels(*star_clusters(pairs, alike, array([]), order, array([(2, 3)])))
    assert parted == {1: 1, 2: 1, 3: 3, 4: 3}
    bound = labels(*star_clusters(pairs, alike, array([(2, 3), (2, 4)]), order, array([(4, 3)])))
    assert bound == {1: 1, 2: 1, 3: 1, 4: 4}


def test_a_document_joins_the_most_similar_representative() -> None:
    pairs, order = array([(1, 3), (2, 3)]), np.arange(1, 4)
    assert labels(*star_clusters(pairs, np.array([0.7, 0.8]), array([]), order)) == {1: 1, 2: 2, 3: 2}
    assert labels(*star_clusters(pairs, np.array([0.7, 0.7]), array([]), order)) == {1: 1, 2: 2, 3: 1}


def averaged(pairs: Edges, alike: list[float], least: float, twins: Edges) -> dict[int, int]:
    return labels(*average_clusters(array(pairs), np.array(alike), array(twins), array(twins), least))


def test_clusters_are_merged_as_long_as_their_average_reaches_the_threshold() -> None:
    chain = [(1, 2), (2, 3)]
    assert averaged(chain, [0.8, 0.9], 0.5, []) == {1: 1, 2: 2, 3: 2}
    assert averaged(chain, [0.8, 0.9], 0.4, []) == {1: 1, 2: 1, 3: 1}
    assert averaged([*chain, (1, 3)], [0.7, 0.7, 0.7], 0.7, []) == {
        1: 1,
        2: 1,
        3: 1,
    }  # rounding must not matter
    assert averaged([(1, 2), (1, 3)], [0.8, 0.7], 0.35, [(2, 4), (2, 5)]) == {1: 1, 2: 1, 3: 1, 4: 1, 5: 1}


def test_averages_of_a_large_graph() -> None:
    graph = networkx.gnm_random_graph(50, 200, seed=1)
    pairs = [(left + 1, right + 1) for left, right in graph.edges]
    alike = [0.5 + (left * 7 + right * 13) % 4 / 10 for left, right in pairs]
    documents = {one: one for pair in pairs for one in pair}
    rules = ClusterRules(linkage="average")
    facts = dict.fromkeys(documents, (None, MAY, 1))
    found = averaged(pairs, alike, 0.3, [])
    evidence = Evidence(rules, documents, documents, facts, dict(zip(pairs, alike, strict=True)), {}, 0.3)
    clusters = {one: cluster for one, (cluster, _) in evidence.clusters().items()}
    assert {one: found[one] for one in clusters} == clusters and 5 < len(set(clusters.values())) < 25
