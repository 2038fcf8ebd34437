"""Connected components against networkx."""

import random
from itertools import pairwise

import networkx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearsim_db.cluster import connected_components

Edges = list[tuple[int, int]]


def components(edges: Edges) -> dict[int, int]:
    documents, smallest = connected_components(np.array(edges, np.int64).reshape(-1, 2))
    assert [documents.dtype, smallest.dtype] == [np.dtype(np.int64)] * 2
    assert (np.diff(documents) > 0).all()
    return dict(zip(documents.tolist(), smallest.tolist(), strict=True))


def expected(edges: Edges) -> dict[int, int]:
    graph = networkx.Graph(edges)
    return {node: min(part) for part in networkx.connected_components(graph) for node in part}


@settings(max_examples=300)
@given(edges=st.lists(st.tuples(st.integers(1, 25), st.integers(1, 25)), max_size=30))
@example(edges=[])
@example(edges=[(7, 7)])
@example(edges=[(2, 1), (1, 2), (1, 2)])
@example(edges=[(3, 4), (1, 2), (4, 1)])
def test_random_graphs(edges: Edges) -> None:
    assert components(edges) == expected(edges)


@given(edges=st.lists(st.tuples(st.integers(1, 2**63 - 1), st.integers(1, 2**63 - 1)), max_size=10))
def test_any_ids(edges: Edges) -> None:
    assert components(edges) == expected(edges)


@pytest.mark.parametrize("degree", [0.5, 1.0, 3.0])
def test_larger_random_graphs(degree: float) -> None:
    drawn = random.Random(str(degree))
    edges = [(drawn.randrange(5_000), drawn.randrange(5_000)) for _ in range(int(5_000 * degree / 2))]
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


@pytest.mark.parametrize("centre", [0, 5_000, 9_999])
def test_a_star(centre: int) -> None:
    edges = [(leaf, centre) for leaf in range(10_000) if leaf != centre]
    assert components(edges) == dict.fromkeys(range(10_000), 0)


def test_many_small_components() -> None:
    edges = [(3 * n + 2, 3 * n + side) for n in range(5_000) for side in (0, 1)]
    assert components(edges) == {node: node - node % 3 for node in range(15_000)}
