"""Every shipped preset on the sample of news stories: correct similarities and the promised recall."""

import json
import re
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from nearsim_db import Document, Index
from nearsim_db.similarity import presets
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import Recipe, load, override
from tests.builders.selection import some

ROOT = Path(__file__).parents[2]
STORIES = ROOT / "examples" / "stories.jsonl"
STOP_WORDS = set(load(ROOT / "benchmarks" / "recipes" / "hbag.toml").shingle.stopwords)


def stories() -> list[Document]:
    """The sample; a story's vector counts its letters, so that some are alike and some are not."""
    read = [json.loads(line) for line in STORIES.read_text("utf-8").splitlines()]
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    return [
        Document(
            one["id"],
            one["title"],
            one["text"],
            vector=[one["text"].lower().count(letter) for letter in letters],
        )
        for one in read
    ]


def true_pairs(profile: Profile, documents: list[Document]) -> dict[frozenset[str], float]:
    """All pairs that reach the threshold, with their similarity, found by comparing everything with everything."""
    encoder = Encoder(profile)
    features = encoder.features([encoder.content_of(one.title, one.body, one.vector) for one in documents])
    kept = [place for place in range(len(documents)) if len(features.of(place))]
    left, right = np.array(list(combinations(range(len(kept)), 2)), np.int64).T
    scores = encoder.compare([features.of(place) for place in kept], left, right)
    reached = encoder.metric.reaches(scores, profile.recipe.match.threshold)
    ids = [documents[place].external_id for place in kept]
    return {
        frozenset((ids[a], ids[b])): similarity
        for a, b, similarity in zip(
            left[reached].tolist(), right[reached].tolist(), scores.similarity[reached].tolist(), strict=True
        )
    }


QUICK_FIRST = sorted(presets.names(), key=lambda name: name not in ("headlines", "short-messages"))


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return stories()


@pytest.mark.parametrize("name", some(QUICK_FIRST, "builds every preset", kept=2))
def test_preset_has_correct_similarities_and_recall(
    name: str, documents: list[Document], database_url: str
) -> None:
    recipe = presets.load(name)
    if recipe.match.ignore_common:  # what is common depends on all documents, not on two
        recipe = override(recipe, ["match.ignore_common=0"])
    profile = resolve(recipe)
    wanted = true_pairs(profile, documents)
    assert wanted, "a preset that pairs nothing of the sample is not tested"
    with Index.connect(database_url, profile=name) as index:
        index.create_profile(name, recipe)
        index.add(documents)
        stored = {frozenset((pair.left, pair.right)): pair for pair in index.pairs()}
        found = {pair: stored[pair].similarity for pair in stored.keys() & wanted.keys()}
        assert found == pytest.approx({pair: wanted[pair] for pair in found}, abs=1e-9)
        certain = recipe.match.certain_shared_bands
        assert all(1 <= certain <= stored[pair].shared_bands for pair in stored.keys() - wanted.keys())
        # Of a few dozen pairs at most, above the threshold most of them: fewer are missed than at the threshold.
        assert len(found) >= profile.expected_recall * len(wanted) - 3
        assert index.stats(name)["clusters"] > 0


def test_published_figures_of_the_source_documents() -> None:
    newshound = resolve(presets.load("newshound"))
    assert (newshound.bands, newshound.rows, newshound.unused_rows) == (40, 3, 0)
    for name, bands, rows in (("newshound-60x4", 60, 4), ("newshound-80x3", 80, 3)):
        larger = resolve(presets.load(name))
        assert (larger.bands, larger.rows, larger.recipe.sketch.k) == (bands, rows, 240)
        assert override(larger.recipe, ["sketch.k=120", "bands.count=40", "bands.rows=3"]) == newshound.recipe


OPENINGS = ("One", "Two", "New", "The", "Says it has", "A", "First", "All of the", "Now", "")
SUBJECTS = ("billion dollar bank", "Microsoft rival", "grain board", "U.S. treasury", "state oil company")
ACTIONS = (
    "sells new notes",
    "says it won't bid",
    "buys 2 mills from rival",
    "sets quarterly dividend",
    "to sell notes",
)
ENDINGS = ("", "in the north", "says source", "this year", "after new talks")


def bag(headline: str) -> set[str]:
    """The lowercased words of a headline that are not among the 127 stop words."""
    return set(re.findall("[a-z0-9]+", headline.lower())) - STOP_WORDS


@pytest.mark.slow("compares many headlines")
def test_newshound_pairs_headlines_that_share_three_bands_or_are_similar(database_url: str) -> None:
    parts = product(OPENINGS, SUBJECTS, ACTIONS, ENDINGS)
    headlines = [" ".join(filter(None, chosen)) for chosen in list(parts)[::3]]
    bags = [bag(headline) for headline in headlines]
    wanted = {
        frozenset((str(left), str(right))): len(bags[left] & bags[right]) / len(bags[left] | bags[right])
        for left, right in combinations(range(len(bags)), 2)
        if 1000 * len(bags[left] & bags[right]) >= 778 * len(bags[left] | bags[right])
    }
    recipe = presets.load("newshound")
    encoder = Encoder(resolve(recipe))
    keys = encoder.matrix_keys(encoder.encode(headlines).sketches)
    shared = {
        frozenset((str(left), str(right))): int((keys[left] == keys[right]).sum())
        for left, right in combinations(range(len(bags)), 2)
    }
    together = {pair for pair, bands in shared.items() if bands >= 3} | wanted.keys()
    given = [Document(str(at), headline) for at, headline in enumerate(headlines)]
    by_bands = override(recipe, ["match.verify=bands", "match.min_shared_bands=3"])
    checked = override(recipe, ["match.certain_shared_bands=0", "match.min_shared_bands=3"])
    found = {}
    for name, rules in (("article", recipe), ("bands", by_bands), ("checked", checked)):
        with Index.connect(database_url, collection=name) as index:
            index.create_profile("default", rules)
            index.add(given)
            found[name] = {frozenset((one.left, one.right)): one for one in index.pairs()}
    assert len(wanted) > 700 and len(together) > 2 * len(wanted)
    # The expected recall of the other test is 0.99999.
    assert found["article"].keys() == together
    assert all(one.union is not None for one in found["article"].values())
    assert {pair for pair, one in found["article"].items() if one.similarity >= 0.778} == wanted.keys()
    twins = {pair for pair, similarity in wanted.items() if similarity == 1}
    assert found["bands"].keys() == {pair for pair, bands in shared.items() if bands >= 3} | twins
    assert all(one.similarity == pytest.approx(one.estimate, abs=1e-6) for one in found["bands"].values())
    assert {pair: one.similarity for pair, one in found["checked"].items()} == pytest.approx(wanted, abs=1e-9)


def test_a_build_reports_links_that_the_limit_leaves_out(database_url: str) -> None:
    stories = [f"the ferry was closed by the storm on a {'very ' * at} windy day" for at in range(12)]
    with Index.connect(database_url, profile="p") as index:
        index.create_profile("p", override(Recipe(), ["match.bucket_limit=2", "match.threshold=0.3"]))
        index.add(Document(str(at), body=text) for at, text in enumerate(stories))
        left_out = index.stats("p")["links_left_out"]
        assert left_out > 0
        assert any(
            f"match.bucket_limit = 2 leaves out {left_out:,} links in " in one for one in index.warnings
        )
