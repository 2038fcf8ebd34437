"""Random recipes over every sketch family, small enough that a plain-Python oracle is quick."""

import random
from collections.abc import Mapping

from nearsim_db.similarity.recipe import Recipe, override

_WORDS = ['shingle.scheme="word"', "shingle.k=2", "match.threshold=0.5"]
_BAG = ['shingle.scheme="bag"']

# Every sketch family with its options, on texts; those named -vector take the owner's vectors.
VARIANTS: Mapping[str, list[str]] = {
    "fast_similarity": [*_WORDS, "sketch.k=16"],
    "minhash-prime32": [*_WORDS, 'sketch.family="minhash"', "sketch.k=16"],
    "minhash-java32": [*_WORDS, 'sketch.family="minhash"', 'sketch.functions="java32"', "sketch.k=16"],
    "bottom_k": [*_WORDS, 'sketch.family="bottom_k"', "sketch.k=8"],
    "dart_minhash": [*_BAG, 'sketch.family="dart_minhash"', "sketch.k=8", "match.threshold=0.5"],
    "hyperplane-gaussian": [*_BAG, 'sketch.family="hyperplane"', "sketch.k=16", "match.threshold=0.71"],
    "hyperplane-sign": [
        *(*_BAG, 'sketch.family="hyperplane"', 'sketch.vectors="sign"', "sketch.k=16"),
        "match.threshold=0.71",
    ],
    "projection": [
        *(*_BAG, 'sketch.family="projection"', "sketch.width=4.0", "sketch.k=8"),
        "match.threshold=2.5",
    ],
    "hyperplane-vector": [
        *('sketch.family="hyperplane"', 'sketch.input="vector"', "sketch.k=16"),
        "match.threshold=0.71",
    ],
    "projection-vector": [
        *('sketch.family="projection"', 'sketch.input="vector"', "sketch.width=4.0", "sketch.k=8"),
        "match.threshold=2.5",
    ],
}


def takes_vectors(variant: str) -> bool:
    """Whether a variant compares vectors, which attached tables do not have."""
    return variant.endswith("-vector")


def draw_recipe(variant: str, rng: random.Random) -> Recipe:
    """Return a recipe of this variant with random bands, limits and cluster rules."""
    return override(Recipe(), [*VARIANTS[variant], *draw_changes(variant, rng)])


def draw_changes(variant: str, rng: random.Random) -> list[str]:
    """Return settings for another generation of a profile of this variant."""
    rows = 1 if variant in ("bottom_k", "dart_minhash", "projection", "projection-vector") else 2
    schemes = ["mix64"]
    if variant.startswith(("fast", "minhash")):
        schemes += ["xor", "djb2a-joined"]
    changes = [
        f"bands.count={rng.choice([4, 8])}",
        f"bands.rows={rng.choice([1, rows])}",
        f'bands.hash="{rng.choice(schemes)}"',
        f"match.bucket_limit={rng.choice([0, 1, 2, 64])}",
        f"match.min_shared_bands={rng.choice([1, 1, 2])}",
        f'cluster.linkage="{rng.choice(["connected", "connected", "representative", "average"])}"',
        f'cluster.keep="{rng.choice(["earliest", "latest", "longest", "source:B,A"])}"',
        f'cluster.numbers_differ="{rng.choice(["link", "link", "keep-apart"])}"',
        f"sketch.seed={rng.randrange(100)}",
    ]
    if not takes_vectors(variant):
        changes.append(f'hash.base="{rng.choice(["poly64", "crc32", "djb2a"])}"')
    return changes
