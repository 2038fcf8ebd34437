"""Draw a cluster as a graph of its ties: find the weakest ties, and a place for each document."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nearsim_db.similarity.arrays import Floats
from nearsim_db.store.pairs.review_documents import ClusterTies, Tie

SIDE = 600.0
DRAWN = 150
_MARGIN = 30.0
_ROUNDS = 120
_WEAKEST = 5
_STRONGEST = 3


@dataclass(frozen=True, slots=True)
class Drawing:
    """The graph of a cluster."""

    places: Mapping[int, tuple[float, float]]  # x and y of each document by doc_id, in a square of `SIDE`
    weakest: Sequence[Tie]  # the least similar spanning ties that are pairs, the weakest first
    spanning: Sequence[Tie]  # of the maximum spanning tree: a threshold above such a tie splits the cluster
    ties: Sequence[Tie]  # the ties to draw: the spanning ties, and the strongest ties of each document


def draw(doc_ids: Sequence[int], ties: ClusterTies) -> Drawing:
    """Place the first documents of a cluster by forces between them (Fruchterman and Reingold 1991)."""
    drawn = sorted(doc_ids[:DRAWN])
    spanning = spanning_ties(len(doc_ids), ties)
    weakest = [tie for tie in reversed(spanning) if tie.kind == "pair"][:_WEAKEST]

    rows = {doc_id: row for row, doc_id in enumerate(drawn)}
    shown = _chosen(
        [tie for tie in spanning if tie.left_id in rows and tie.right_id in rows], ties.among(drawn)
    )

    placed = _placed(len(drawn), [(rows[tie.left_id], rows[tie.right_id]) for tie in shown])
    return Drawing(dict(zip(drawn, placed, strict=True)), weakest, spanning, shown)


def _chosen(spanning: Sequence[Tie], ties: ClusterTies) -> list[Tie]:
    """Return the spanning ties, and the strongest ties of each document."""
    degree: Counter[int] = Counter()
    chosen = set(spanning)
    for tie in ties:
        if degree[tie.left_id] < _STRONGEST or degree[tie.right_id] < _STRONGEST:
            chosen.add(tie)
            degree.update((tie.left_id, tie.right_id))
    return sorted(chosen, key=lambda tie: (tie.left_id, tie.right_id, tie.kind))


def spanning_ties(documents: int, ties: ClusterTies) -> list[Tie]:
    """Return the ties of a maximum spanning forest, the most similar first (Kruskal 1956).

    A threshold t splits the cluster into one part more than there are spanning ties below t.
    """
    root: dict[int, int] = {}

    def find(doc_id: int) -> int:
        while root.setdefault(doc_id, doc_id) != doc_id:
            # Halve the path to the root, so that later calls are faster.
            root[doc_id] = root[root[doc_id]]
            doc_id = root[doc_id]
        return doc_id

    spanning: list[Tie] = []
    # The strongest ties come first.
    for tie in ties:
        left, right = find(tie.left_id), find(tie.right_id)
        if left != right:
            root[left] = right
            spanning.append(tie)
        if len(spanning) == documents - 1:
            break
    return spanning


def _placed(count: int, ends: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """Return x and y of each document, starting on a circle: tied documents attract, all documents repel each other."""
    angle = 2 * np.pi * np.arange(count) / max(count, 1)
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    distance = (4.0 / max(count, 1)) ** 0.5

    pairs = np.array(ends, np.int64).reshape(-1, 2)
    for turn in range(_ROUNDS):
        force = _repulsion(place, distance)
        along = place[pairs[:, 1]] - place[pairs[:, 0]]
        pull = along * (np.linalg.norm(along, axis=1, keepdims=True) / distance)
        # += would add only once for a document in several pairs.
        np.add.at(force, pairs[:, 0], pull)
        np.add.at(force, pairs[:, 1], -pull)
        # The steps become shorter in every round, so that the places settle.
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        place += force / length * np.minimum(length, 0.2 * (1 - turn / _ROUNDS))
    return _scaled(place)


def _repulsion(place: Floats, distance: float) -> Floats:
    apart = place[:, None] - place[None]
    # Avoid a division by zero: the distance of a place from itself is 0.
    squared = np.maximum((apart**2).sum(axis=2), 1e-4)
    force: Floats = (apart * (distance**2 / squared)[:, :, None]).sum(axis=1)
    return force


def _scaled(place: Floats) -> list[tuple[float, float]]:
    """Fit the places into the square."""
    low, high = place.min(axis=0), place.max(axis=0)
    scale = (SIDE - 2 * _MARGIN) / max(float((high - low).max()), 1e-9)
    centred = (place - (low + high) / 2) * scale + SIDE / 2
    return [(round(float(x), 1), round(float(y), 1)) for x, y in centred]
