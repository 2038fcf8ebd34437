"""Every shipped preset on the sample of news stories: correct similarities and the promised recall."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from nearsim_db import Document, Index
from nearsim_db.similarity import presets
from nearsim_db.similarity.common_shingles import Frequencies
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.selection import some

ROOT = Path(__file__).parents[2]
STORIES = ROOT / "examples" / "stories.jsonl"


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
    contents = [encoder.content_of(one.title, one.body, one.vector) for one in documents]
    features = encoder.features(contents)
    if encoder.freezes:
        encoder.freeze(Frequencies.of([[features.ids_of(place) for place in range(len(documents))]]))
        features = encoder.features(contents)
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
    if recipe.sketch.family == "rare":  # stories have more rare words than records
        recipe = override(recipe, ["sketch.k=128"])
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
