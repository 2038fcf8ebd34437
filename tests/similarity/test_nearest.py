"""The nearest documents against brute force in plain Python."""

import math
import random
from collections import Counter

import numpy as np
import pytest

from nearsim_db.similarity.arrays import Ragged
from nearsim_db.similarity.nearest import MAX_KEYS, MAX_LINKS, NearestJoin, NearestPairs, Weights

Sets = list[frozenset[int]]


def ragged(sets: Sets) -> Ragged:
    return Ragged.of([np.array(sorted(one), np.uint64) for one in sets])


def similarity(
    one: frozenset[int], other: frozenset[int], weights: Weights, frequency: Counter[int], n: int
) -> float:
    shared = one & other
    if weights == "none":
        return len(shared) / len(one | other)
    squares = {term: math.log(1 + n / frequency[term]) ** 2 for term in one | other}
    lengths = [math.sqrt(sum(squares[term] for term in terms)) for terms in (one, other)]
    return sum(squares[term] for term in shared) / (lengths[0] * lengths[1])


def brute_force(
    queries: Sets,
    targets: Sets | None,
    most: int,
    least: float,
    weights: Weights,
    labels: tuple[list[int], list[int]] | None,
    rule: str | None,
) -> list[tuple[int, int, float]]:
    others = queries if targets is None else targets
    documents = queries if targets is None else queries + targets
    frequency = Counter(term for one in documents for term in one)
    found = []
    for query, one in enumerate(queries):
        near = [
            (-round(similarity(one, other, weights, frequency, len(documents)), 9), target)
            for target, other in enumerate(others)
            if one & other
            and not (targets is None and target == query)
            and (labels is None or (labels[0][query] == labels[1][target]) == (rule == "agreeing"))
        ]
        found += [(query, target, -alike) for alike, target in sorted(near)[:most] if -alike >= least]
    return found


def random_sets(rng: random.Random, count: int, vocabulary: int = 60) -> Sets:
    return [frozenset(rng.sample(range(vocabulary), rng.randint(0, MAX_KEYS // 2))) for _ in range(count)]


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("weights", ["idf", "none"])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("rule", [None, "differing", "agreeing"])
def test_the_nearest_are_those_of_brute_force(
    backend: str, weights: Weights, own: bool, rule: str | None
) -> None:
    rng = random.Random(f"{weights}{own}{rule}")
    queries, targets = random_sets(rng, 80), None if own else random_sets(rng, 50)
    others = queries if targets is None else targets
    labels = ([rng.randrange(3) for _ in queries], [rng.randrange(3) for _ in others]) if rule else None
    if labels is not None and own:
        labels = labels[0], labels[0]
    given = None if labels is None else (np.array(labels[0]), np.array(labels[1]))
    join = NearestJoin(
        ragged(queries),
        None if targets is None else ragged(targets),
        weights=weights,
        differing=given if rule == "differing" else None,
        agreeing=given if rule == "agreeing" else None,
        backend=backend,
    )
    found = NearestPairs.joined(list(join.search(4, 0.1)))
    rows = list(zip(found.query.tolist(), found.target.tolist(), strict=True))
    expected = brute_force(queries, targets, 4, 0.1, weights, labels, rule)
    by_query = {query: [one for one in expected if one[0] == query] for query, _, _ in expected}
    assert len(rows) == len(expected) > 50
    # Equally similar ones may come in another order where sums differ in their last bits.
    for query, near in by_query.items():
        own_rows = found.query == query
        assert found.similarity[own_rows].tolist() == pytest.approx([alike for _, _, alike in near])
        sure = [target for _, target, alike in near if alike > near[-1][2] + 1e-6]
        assert set(sure) <= set(found.target[own_rows].tolist())
    assert join.left_out == 0


def test_mutual_neighbours_are_nearest_of_each_other() -> None:
    sets = random_sets(random.Random(5), 60)
    found = NearestPairs.joined(list(NearestJoin(ragged(sets), None).search(2, 0.0)))
    pairs = set(zip(found.query.tolist(), found.target.tolist(), strict=True))
    kept = found.mutual(found)
    assert set(zip(kept.query.tolist(), kept.target.tolist(), strict=True)) == {
        (one, other) for one, other in pairs if (other, one) in pairs
    }


def test_clear_neighbours_are_more_similar_than_the_next_one() -> None:
    found = NearestPairs.joined(
        list(NearestJoin(ragged(random_sets(random.Random(6), 80)), None).search(3, 0.0))
    )
    near: dict[int, list[tuple[int, float]]] = {}
    for query, target, alike in zip(
        *(one.tolist() for one in (found.query, found.target, found.similarity)), strict=True
    ):
        near.setdefault(query, []).append((target, alike))
    for margin in (0.0, 0.2):
        kept = found.clear(2, margin)
        assert list(zip(kept.query.tolist(), kept.target.tolist(), strict=True)) == [
            (query, target)
            for query, own in near.items()
            for target, alike in own[:2]
            if len(own) < 3 or alike * (1 - margin) >= own[2][1]
        ]
        assert (len(kept.query) < sum(len(own[:2]) for own in near.values())) == (margin > 0)


def test_documents_of_common_features_only_are_counted() -> None:
    same = [frozenset({1, 2})] * (MAX_LINKS + 50)
    join = NearestJoin(ragged(same), None)
    found = NearestPairs.joined(list(join.search(3, 0.2)))
    assert join.left_out == len(same)
    assert len(found.query) == 3 * len(same) and found.similarity.tolist() == pytest.approx(
        [1.0] * len(found.query)
    )


@pytest.mark.parametrize("sets", [[], [frozenset()], [frozenset(), frozenset({3})]])
def test_nothing_is_found_where_nothing_is_shared(sets: Sets) -> None:
    assert list(NearestJoin(ragged(sets), None).search(5, 0.0)) == []
