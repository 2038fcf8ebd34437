"""Chains: the sample of a cluster's texts, and the least similar of them."""

import numpy as np
import pytest

from nearsim_db.similarity import chains
from nearsim_db.similarity.arrays import Floats, Ints
from nearsim_db.similarity.chains import ClusterSpread
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, parse
from nearsim_db.similarity.recipe_warnings import of_chains


@pytest.mark.parametrize("count", [3, 31, 32, 33, 64, 1_000_003])
def test_a_sample_has_the_first_and_the_last_text(count: int) -> None:
    rows = chains.sampled_rows(count)
    assert (rows[0], rows[-1]) == (0, count - 1)
    assert len(rows) == len(set(rows.tolist())) == min(count, chains.MAX_SAMPLED_TEXTS)


def test_the_lowest_similarity_is_of_all_pairs() -> None:
    places = np.array([0.3, 0.9, 0.1, 0.5])

    def similarities(left: Ints, right: Ints) -> Floats:
        close: Floats = 1 - np.abs(places[left] - places[right])
        return close

    assert chains.lowest_similarity(len(places), similarities) == pytest.approx(0.2)


def test_the_worst_cluster_below_half_of_the_threshold_is_named() -> None:
    profile = resolve(Recipe())
    assert of_chains(profile, [ClusterSpread(9, 0.36)]) == []
    (warning,) = of_chains(profile, [ClusterSpread(9, 0.34), ClusterSpread(28, 0.121), ClusterSpread(3, 0.9)])
    assert (
        "a cluster of 28 documents (and 1 other cluster) joins texts whose similarity is 0.12 or lower"
        in warning
    )
    assert "cluster.linkage = average (now connected)" in warning
    (nothing,) = of_chains(profile, [ClusterSpread(1_000, 0.0)], "record", estimated=True)
    assert "a cluster of 1,000 records joins texts whose similarity is about 0, through" in nothing


def test_averages_are_no_remedy_where_pairs_may_have_any_similarity() -> None:
    profile = resolve(parse('match.verify = "bands"'))
    (warning,) = of_chains(profile, [ClusterSpread(28, 0.1)])
    assert "cluster.linkage = representative (now connected)" in warning
