"""Pairs of pages that share a menu and little else, by features and by sketches, and copies that share their story."""

import itertools

import numpy as np
import pytest

from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.frames import count_framed, count_framed_sketches
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.pages import words

MENU = words("menu", 150)


def counts(texts: list[str], family: str = "fast_similarity") -> tuple[int, int, int]:
    """How many pairs are framed by their features and by their sketches, and how many there are."""
    encoder = Encoder(resolve(override(Recipe(), [f"sketch.family={family}"])), "numpy")
    encoded = encoder.encode(texts, keep_features=True)
    pairs = list(itertools.combinations(range(len(texts)), 2))
    return (
        count_framed(encoded.features, pairs),
        count_framed_sketches(encoded.sketches, pairs),
        len(pairs),
    )


@pytest.mark.parametrize("family", ["fast_similarity", "minhash"])
def test_pages_under_one_menu_share_little_else(family: str) -> None:
    assert counts([f"{MENU} {words(f'story{at}x', 60)}" for at in range(10)], family) == (45, 45, 45)


def test_copies_of_a_story_share_more_than_the_menu() -> None:
    pages = [f"{MENU} {words(f'story{at}x', 60)}" for at in range(10)]
    copies = [f"{page} updated" for page in pages]
    assert counts([*pages, *copies])[:2] == (180, 180)  # all but 10 pairs of a story and its copy


def test_versions_of_one_story_are_not_framed() -> None:
    assert counts([f"{MENU} and version {at} of it" for at in range(10)]) == (0, 0, 45)
    assert count_framed([np.arange(50, dtype=np.uint64)] * 2, [(0, 1)]) == 0
    assert count_framed([], []) == 0


def test_remedies_are_those_that_the_recipe_lacks() -> None:
    (warning,) = recipe_warnings.of_frames(Recipe(), 30, 45, in_index=True)
    assert "30 of 45 pairs looked at have little in common" in warning
    for remedy in (
        "normalise.html = main",
        "drop_repeated = source (nearsim dedupe",
        "match.across = source",
    ):
        assert remedy in warning
    settings = ["normalise.html=main", "normalise.drop_repeated=host", "match.across=host"]
    assert "raise match.threshold" in recipe_warnings.of_frames(override(Recipe(), settings), 30, 45)[0]
    assert recipe_warnings.of_frames(Recipe(), 22, 45) == []
