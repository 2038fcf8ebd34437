"""Random documents of few words, so that twins, near-copies and full buckets abound."""

import random
from typing import Any

_BASES = (
    "Aa bb cc dd ee ff gg hh",
    "aa bb cc dd ee ff gg zz",
    "ii jj kk ll mm nn oo pp",
    "ii jj kk ll qq rr ss tt",
    "ein zwei drei vier fünf",
)
_TOKENS = ("w1", "w2", "w3", "w4", "7", "8", "Éa")
_SOURCES = (None, "A", "B", "C")
_EMPTY = (" ", "?!", "", None)


def draw_text(rng: random.Random) -> str | None:
    """Return one of few texts, often with a word changed, sometimes without a word."""
    if rng.random() < 0.05:
        return rng.choice(_EMPTY)
    words = rng.choice(_BASES).split()
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3])):
        words[rng.randrange(len(words))] = rng.choice(_TOKENS)
    return " ".join(words[: rng.choice([8, 8, 8, 5, 1])])


def draw_fields(rng: random.Random) -> dict[str, Any]:
    """Return random values for the fields of a document that a profile reads."""
    return {
        "title": rng.choice([None, None, None, "", "Title 7", "Aa"]),
        "body": draw_text(rng),
        "vector": _draw_vector(rng),
        "source": rng.choice(_SOURCES),
        "published_at": f"2026-05-{rng.randrange(1, 20):02}T00:00:00+00:00",
    }


def draw_story(rng: random.Random) -> dict[str, Any]:
    """Return random values for a row of the attached table."""
    fields = draw_fields(rng)
    return {
        "headline": fields["title"],
        "body": fields["body"],
        "source": fields["source"],
        "day": fields["published_at"],
    }


def _draw_vector(rng: random.Random) -> list[float] | None:
    if rng.random() < 0.05:
        return rng.choice([None, [0.0, 0.0]])
    vector = list(rng.choice([[3.0, -1.0, 2.0, 0.5, 0.0, 4.0], [-2.0, 2.5, 0.0, 1.0, 3.0, -4.0]]))
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        vector[rng.randrange(len(vector))] = rng.choice([-1.0, 0.0, 1.5, 3.0])
    return vector
