"""clusters_at: pairs, clusters and removed documents at another threshold, against components by brute force."""

from itertools import combinations

import networkx as nx
import psycopg
import pytest

from tests.builders.sql_world import World, world

COUNTS = "SELECT documents, pairs, clusters, removed FROM nearsim.clusters_at(%s)"
REVIEWED = ["match.threshold=0.7", "match.review=0.4"]
SHOWN = (
    "SELECT (SELECT count(*) FROM nearsim.pairs), (SELECT count(*) FROM nearsim.clusters),"
    " (SELECT count(*) FROM nearsim.duplicates)"
)

pytestmark = pytest.mark.usefixtures("either_tables")


def expected(known: World, threshold: float, *, apart: bool = False) -> tuple[int, int, int, int]:
    """Return documents with features, and pairs, clusters and removed documents by brute force."""
    documents = [doc_id for doc_id in known.doc_ids if known.features[doc_id]]
    pairs = [
        pair
        for pair in combinations(documents, 2)
        if known.meets(*pair) and known.similarity(*pair) >= threshold
    ]
    ties = [
        (left, right) for left, right in pairs if not apart or known.numbers(left) == known.numbers(right)
    ]
    clusters = list(nx.connected_components(nx.Graph(ties)))
    return len(documents), len(pairs), len(clusters), sum(map(len, clusters)) - len(clusters)


def test_counts_are_those_of_the_connected_components(database_url: str) -> None:
    with world(database_url, *REVIEWED) as known:
        for threshold in (0.4, 0.5, 0.55, 0.7, 0.8, 0.95, 1.0):
            assert known.ask(COUNTS, threshold) == [expected(known, threshold)], threshold
        assert len({known.ask(COUNTS, threshold)[0] for threshold in (0.4, 0.5, 0.7, 0.8, 1.0)}) == 5


def test_documents_with_other_numbers_stay_apart(database_url: str) -> None:
    with world(
        database_url, *REVIEWED, "cluster.numbers_differ=keep-apart", "shingle.min_token_length=2"
    ) as known:
        for threshold in (0.4, 0.7, 0.9, 1.0):
            assert known.ask(COUNTS, threshold) == [expected(known, threshold, apart=True)], threshold


@pytest.mark.parametrize(
    "rules",
    [
        ["match.threshold=0.7"],
        ["match.threshold=0.7", "match.verify=bands"],
        ["match.threshold=0.9", "match.certain_shared_bands=15"],
        ["match.threshold=0.7", "cluster.numbers_differ=keep-apart"],
        ["match.threshold=0.7", "cluster.keep=none"],
    ],
)
def test_counts_at_the_threshold_of_the_recipe_are_those_of_the_views(
    database_url: str, rules: list[str]
) -> None:
    with world(database_url, *rules) as known:
        threshold = known.profile.recipe.match.threshold
        (shown,) = known.ask(SHOWN)
        ((_, *counted),) = known.ask(COUNTS, threshold)
        assert tuple(counted) == shown


def test_pairs_by_their_bands_are_pairs_at_any_threshold(database_url: str) -> None:
    with world(database_url, "match.threshold=0.7", "match.verify=bands") as known:
        assert known.ask(COUNTS, 1.0) == known.ask(COUNTS, 0.1)
        assert known.ask("SELECT is_complete FROM nearsim.clusters_at(0.1)") == [(True,)]


def test_counts_below_the_lowest_stored_similarity_are_incomplete(database_url: str) -> None:
    complete = "SELECT is_complete FROM nearsim.clusters_at(%s)"
    with world(database_url, *REVIEWED) as known:
        assert [known.ask(complete, threshold) for threshold in (0.4, 0.39)] == [[(True,)], [(False,)]]
        assert known.ask(COUNTS, 0.1) == known.ask(COUNTS, 0.4)


def test_threshold_of_a_projection_is_a_distance(database_url: str) -> None:
    rules = ["sketch.family=projection", "sketch.k=120", "shingle.scheme=bag", "match.threshold=3.5"]
    with world(database_url, *rules, "match.min_shared_bands=2") as known:
        (shown,) = known.ask(SHOWN)
        ((documents, *counted),) = known.ask(COUNTS, 3.5)
        assert tuple(counted) == shown
        pairs = "SELECT count(*) FROM nearsim.pairs WHERE distance <= 2"
        assert known.ask("SELECT documents, pairs, is_complete FROM nearsim.clusters_at(2)") == [
            (documents, known.ask(pairs)[0][0], True)
        ]
        assert known.ask("SELECT is_complete FROM nearsim.clusters_at(3.6)") == [(False,)]
        for refused in (-1.0, float("nan")):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="distances, which begin at 0"):
                known.ask(COUNTS, refused)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), None])
def test_a_threshold_that_no_similarity_can_have_is_refused(whole: World, threshold: float | None) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"is outside 0\.\.1"):
        whole.ask(COUNTS, threshold)


def test_a_collection_without_documents_has_no_counts(whole: World) -> None:
    whole.ask("INSERT INTO nearsim.collection (name) VALUES ('bare')")
    assert whole.ask("SELECT * FROM nearsim.clusters_at(0.5, 'bare')") == []
