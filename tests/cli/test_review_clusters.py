"""The ties that hold a cluster together, against an independent graph library."""

import random
import struct

import networkx
import pytest

from nearsim_db.cli.review.clusters import DRAWN, SIDE, draw, spanning_ties
from nearsim_db.store.pairs.review_documents import ClusterTies, Tie


def packed(ties: list[Tie]) -> ClusterTies:
    """The ties as the database returns them."""
    return ClusterTies.unpacked(
        b"".join(struct.pack(">qqdq", one.left_id, one.right_id, one.similarity, 0) for one in ties)
    )


def ties(rng: random.Random, count: int) -> list[Tie]:
    """Random ties among so many documents, connected by a chain of them."""
    chain = [(one, one + 1) for one in range(1, count)]
    more = [tuple(sorted(rng.sample(range(1, count + 1), 2))) for _ in range(2 * count)]
    ends = sorted({*chain, *((left, right) for left, right in more)})
    return [Tie(left, right, round(rng.uniform(0.7, 1), 3), "pair") for left, right in ends]


@pytest.mark.parametrize("seed", range(5))
def test_spanning_ties_tell_the_parts_at_every_threshold(seed: int) -> None:
    found = ties(random.Random(seed), 20)
    spanning = spanning_ties(20, packed(found))
    for threshold in (0.7, 0.8, 0.9, 0.95, 1.0):
        graph = networkx.Graph()
        graph.add_nodes_from(range(1, 21))
        graph.add_edges_from((one.left_id, one.right_id) for one in found if one.similarity >= threshold)
        parts = 1 + sum(one.similarity < threshold for one in spanning)
        assert parts == networkx.number_connected_components(graph)


def test_drawings_are_bounded_and_have_the_weakest_tie() -> None:
    found = ties(random.Random(1), 300)
    drawing = draw(range(1, 301), packed(found))
    assert len(drawing.places) == DRAWN
    assert all(0 <= x <= SIDE and 0 <= y <= SIDE for x, y in drawing.places.values())
    assert drawing.weakest[0] == min(drawing.spanning, key=lambda one: one.similarity)
    assert {end for one in drawing.ties for end in (one.left_id, one.right_id)} <= set(drawing.places)
