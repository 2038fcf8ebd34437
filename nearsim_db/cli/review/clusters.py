"""A cluster as a graph of its ties: which are the weakest, and where each document is drawn."""

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
    """Where documents are drawn, by doc_id, in a square of `SIDE`; and ties that would split the cluster.

    `weakest` are the least similar ties without which the cluster falls apart at some threshold (those of its maximum
    spanning tree), the weakest first. Pins and twins are never among them. `ties` are those drawn: the spanning ones
    and the strongest of each document.
    """

    places: Mapping[int, tuple[float, float]]
    weakest: Sequence[Tie]
    spanning: Sequence[Tie]
    ties: Sequence[Tie]


def draw(doc_ids: Sequence[int], ties: ClusterTies) -> Drawing:
    """Place the first documents of a cluster by the forces of their ties (Fruchterman and Reingold 1991)."""
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
    """Return the spanning ties and, of each document, the strongest ties."""
    degree: Counter[int] = Counter()
    chosen = set(spanning)
    for tie in ties:
        if degree[tie.left_id] < _STRONGEST or degree[tie.right_id] < _STRONGEST:
            chosen.add(tie)
            degree.update((tie.left_id, tie.right_id))
    return sorted(chosen, key=lambda tie: (tie.left_id, tie.right_id, tie.kind))


def spanning_ties(documents: int, ties: ClusterTies) -> list[Tie]:
    """Return the ties of a maximum spanning forest of so many documents, the most similar first (Kruskal 1956).

    At a threshold t the cluster falls into one more part for each of these ties below t.
    """
    root: dict[int, int] = {}

    def find(doc_id: int) -> int:
        while root.setdefault(doc_id, doc_id) != doc_id:
            # Halves the path, so that later calls are short.
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
    """Return x and y of each document: neighbours attract, all repel each other, from a circle on."""
    angle = 2 * np.pi * np.arange(count) / max(count, 1)
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    distance = (4.0 / max(count, 1)) ** 0.5

    pairs = np.array(ends, np.int64).reshape(-1, 2)
    for turn in range(_ROUNDS):
        force = _repulsion(place, distance)
        along = place[pairs[:, 1]] - place[pairs[:, 0]]
        pull = along * (np.linalg.norm(along, axis=1, keepdims=True) / distance)
        # += would add once for a document of several pairs.
        np.add.at(force, pairs[:, 0], pull)
        np.add.at(force, pairs[:, 1], -pull)
        # Steps become shorter from round to round, so that the places settle.
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        place += force / length * np.minimum(length, 0.2 * (1 - turn / _ROUNDS))
    return _scaled(place)


def _repulsion(place: Floats, distance: float) -> Floats:
    apart = place[:, None] - place[None]
    # A place is at no distance from itself.
    squared = np.maximum((apart**2).sum(axis=2), 1e-4)
    force: Floats = (apart * (distance**2 / squared)[:, :, None]).sum(axis=1)
    return force


def _scaled(place: Floats) -> list[tuple[float, float]]:
    """Fit the places into the square."""
    low, high = place.min(axis=0), place.max(axis=0)
    scale = (SIDE - 2 * _MARGIN) / max(float((high - low).max()), 1e-9)
    centred = (place - (low + high) / 2) * scale + SIDE / 2
    return [(round(float(x), 1), round(float(y), 1)) for x, y in centred]
