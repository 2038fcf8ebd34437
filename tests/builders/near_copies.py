"""Random texts and near-copies of them, and a recipe that misses no pair of a text and its copy."""

import random

from nearsim_db import Recipe
from nearsim_db.similarity.recipe import from_mapping

WORDS = [f"word{number}" for number in range(400)]


def text(rng: random.Random, words: int = 60) -> str:
    """A random text."""
    return " ".join(rng.choices(WORDS, k=words))


def edited(rng: random.Random, original: str, edits: int = 1) -> str:
    """The text with some words replaced."""
    words = original.split()
    for place in rng.sample(range(len(words)), edits):
        words[place] = rng.choice(WORDS)
    return " ".join(words)


def recipe(**match: object) -> Recipe:
    """A recipe with enough bands to miss no pair at the threshold."""
    return from_mapping({"bands": {"count": 64, "rows": 2}, "match": {"threshold": 0.7, **match}})
