"""Explanations of any two documents against brute force."""

from itertools import combinations

import pytest

from nearsim_db import Document, Index
from nearsim_db.errors import InputError, NotFoundError
from nearsim_db.search.explanation import Explanation
from nearsim_db.similarity import lsh
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.sketch.winnow import run_probability
from tests.builders.sql_world import ALONE, EMPTY, MINIMUM, THRESHOLD, World, fill, filled
from tests.servers.databases import Server

BUCKETS = """
    SELECT lpad(to_hex(bucket_hash), 16, '0'), array_agg(doc_id ORDER BY doc_id)
    FROM nearsim.band GROUP BY bucket_hash"""
IDS = "SELECT doc_id FROM nearsim.document WHERE external_id IN ('d2', 'd3') ORDER BY external_id"


def explain(known: World, left: int, right: int) -> Explanation:
    return known.index.why(known.names[left], known.names[right])


def test_any_two_documents_have_their_exact_similarity_and_reasons(server: Server) -> None:
    with server.database(fill) as url, filled(url) as known:
        below = "below_threshold"
        wanted = [("twins",), ("pair",), ("no_features",), (below,), (below, "too_few_shared_bands")] * 2
        for left, right in combinations(known.doc_ids, 2):
            expected = expected_reasons(known, left, right)
            if expected in wanted:
                wanted.remove(expected)
                found = explain(known, left, right)
                check_figures(known, found, left, right)
                assert tuple(reason.kind for reason in found.reasons) == expected
            if not wanted:
                break
        assert not wanted


def check_figures(known: World, found: Explanation, left: int, right: int) -> None:
    """The exact similarity, whether or not the two are a pair, and the figures of the sketches."""
    profile = known.profile
    assert (found.left.id, found.right.id) == (known.names[left], known.names[right])
    assert (found.left.text, found.right.text) == (known.texts[left], known.texts[right])
    if not (known.features[left] and known.features[right]):
        assert (found.similarity, found.estimate, found.remedy) == (None, None, None)
        return
    similarity = known.similarity(left, right)
    assert (found.similarity, (found.intersection, found.union)) == (similarity, known.sizes(left, right))
    assert found.stored_similarity == (similarity if known.is_pair(left, right) else None)
    assert found.estimate == pytest.approx(known.estimate(left, right), abs=1e-6)
    assert (found.shared_bands, [one.band for one in found.buckets]) == (
        known.shared(left, right),
        known.bands(left, right),
    )
    chance = lsh.match_probability(similarity, profile.bands, profile.rows, MINIMUM)
    assert found.probability == pytest.approx(chance, abs=1e-12)


def expected_reasons(known: World, left: int, right: int) -> tuple[str, ...]:
    if not (known.features[left] and known.features[right]):
        return ("no_features",)
    if known.features[left] == known.features[right]:
        return ("twins",)
    if known.is_pair(left, right):
        return ("pair",)
    below = ["below_threshold"] if known.similarity(left, right) < THRESHOLD else []
    return (*below, *(["too_few_shared_bands"] if known.shared(left, right) < MINIMUM else []))


@pytest.mark.slow("builds an index by the remedy")
def test_a_remedy_makes_them_a_pair(server: Server) -> None:
    with server.database(fill) as url, filled(url) as known:
        similarity, (left, right) = max(
            (similarity, pair)
            for pair in combinations(known.doc_ids, 2)
            if (similarity := known.similarity(*pair)) < THRESHOLD
        )
        remedy = explain(known, left, right).remedy
        assert remedy is not None and remedy.sufficient
        (setting,) = remedy.settings
        assert 0 <= similarity - float(setting.removeprefix("match.threshold=")) < 0.0002
        changed = known.index.create_profile("changed", override(known.profile.recipe, remedy.settings))
        assert (changed.bands, changed.rows) == (remedy.bands, remedy.rows)
        with Index.connect(url, profile="changed") as index:
            found = index.why(known.names[left], known.names[right])
        assert (found.is_pair, found.shared_bands) == (True, remedy.shared_bands)
        assert found.stored_similarity == similarity


def test_the_chance_of_texts_with_a_run_shorter_than_the_guarantee(database_url: str) -> None:
    """Their longest common run, not their containment, decides under winnow whether they share a fingerprint."""
    words = [f"w{at}" for at in range(80)]
    with Index.connect(database_url) as index:
        index.create_profile(
            "default", override(Recipe(), ["sketch.family=winnow", "match.min_fingerprints=1"])
        )
        texts = {"whole": words, "long": [*words[20:40], *"abcdefgh"], "short": [*words[50:62], *"ijklmnop"]}
        index.add(Document(name, body=" ".join(text)) for name, text in texts.items())
        assert index.why("whole", "long").probability == 1
        # A run of 12 words has 8 shingles of 5 words, which windows of 16 may miss.
        assert index.why("whole", "short").probability == pytest.approx(run_probability(8, 16))
        more = index.create_profile("more", override(Recipe(), ["sketch.family=winnow"]))
    with Index.connect(database_url, profile="more") as index:
        index.build()
        # The longer text has 76 shingles, so windows of 1 for the 64 fingerprints that it has at least.
        assert more.recipe.match.min_fingerprints == 64
        assert index.why("whole", "short").probability == 1


@pytest.mark.slow("builds an index")
def test_the_bucket_limit_that_would_link_two(database_url: str) -> None:
    with Index.connect(database_url) as index:
        rules = ["match.bucket_limit=1", "match.threshold=0.5", "shingle.k=1"]
        index.create_profile("default", override(Recipe(), rules))
        words = " ".join(f"word{number}" for number in range(40))
        index.add([Document(f"d{number}", body=f"{words} end{number}") for number in range(4)])
        found = index.why("d2", "d3")
        assert [reason.kind for reason in found.reasons] == ["bucket_limit"]
        assert found.similarity == 40 / 42
        with index.database.engine.begin() as connection:
            asked = connection.backend
            (second,), (third,) = asked.execute(IDS)
            stored = {
                (bucket, len(members), members.index(second) + 1)
                for bucket, members in asked.execute(BUCKETS)
                if {second, third} <= set(members)
            }
        assert {(one.bucket, one.members, one.place) for one in found.buckets} == stored
        limit = min(place for _, _, place in stored)
        assert limit > 1 and found.reasons[0].text.endswith(f"a limit of {limit} would link them")
        assert found.remedy is not None and found.remedy.settings == (f"match.bucket_limit={limit}",)
        assert index.why("d3", "d0").is_pair


@pytest.mark.slow("updates the index")
def test_what_cannot_be_compared(server: Server) -> None:
    with server.database(fill) as url, filled(url) as known:
        names = [known.names[one] for one in known.doc_ids[2:4]]
        known.ask("UPDATE nearsim.document SET body = 'something new' WHERE external_id = %s", names[0])
        found = known.index.why(*names)
        (reason,) = found.reasons
        assert (reason.kind, reason.text) == ("not_indexed", f"document {names[0]!r} waits to be indexed")
        assert (found.left.text, found.left.only_here, found.similarity) == ("something new", None, 0)
        known.index.veto(names[0], names[1], "another court", by="Ada")
        first, *_ = known.index.why(*names).reasons
        assert (first.kind, first.text) == (
            "vetoed",
            "they never share a cluster: vetoed by Ada: another court",
        )
        assert known.index.why(EMPTY, ALONE).reasons[0].kind == "no_features"
        with pytest.raises(InputError, match="is given twice"):
            known.index.why(ALONE, ALONE)
        with pytest.raises(NotFoundError, match="has no document 'nobody'"):
            known.index.why(ALONE, "nobody")


def test_explain_is_the_earlier_name_of_why() -> None:
    assert Index.explain is Index.why
