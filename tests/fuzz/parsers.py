"""Targets: the parsers of recipes, of single settings and of amplifications."""

import random
from collections.abc import Sequence
from contextlib import nullcontext, suppress

from nearsim_db.errors import RecipeError
from nearsim_db.similarity import amplification, presets
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override, parse, to_toml
from tests.fuzz.contract import Target, Texts

_VALUES = [
    "0", "1", "-1", "3", "0.5", "1e400", "nan", "inf", "true", '"en"', "'none'", "[]", '["a", "the"]', "{}",
    "{a = 1}", "9" * 30, "9" * 5_000, "1979-05-27", '"\\ud800"', '"\\u0000"', '"""', "'''", "[" * 9,
    "{a=" * 9, "0x1f", "é", "\udc80",
]  # fmt: skip
_NAMES = [
    "fields", "normalise", "unicode", "case", "whitespace", "html", "invisible", "shingle", "scheme", "k", "tokens",
    "stopwords", "stem", "hash", "base", "sketch", "family", "seed", "functions", "input", "weights",
    "vectors", "width", "bands", "recall", "count", "rows", "match", "threshold", "min_shared_bands",
    "amplification", "verify", "bucket_limit", "cluster", "linkage", "keep", "numbers_differ", "retain",
    "age",
]  # fmt: skip
_WORDS = [
    '"char"', '"bag"', '"sentence"', '"minhash"', '"bottom_k"', '"rare"', '"idf"',
    '"hyperplane"', '"projection"', '"30 days"',
]  # fmt: skip
_SIGNS = ["=", " = ", ".", "\n", "[", "]", "[[", "]]", "{", "}", ",", " ", "#", '"', "'", "\\", "\r\n", "\t"]
_STEPS = [
    "or(", "and(", "at_least(", ")", ",", ", ", " ", "(", "0", "1", "3", "40", "65536", "65537", "9" * 9,
    "9" * 10,
]  # fmt: skip


def check_recipes(texts: Sequence[str], rng: random.Random) -> None:
    """A recipe is refused with a RecipeError, or written as TOML that gives the same recipe."""
    for text in texts:
        with suppress(RecipeError):
            recipe = parse(text)
            assert parse(to_toml(recipe)) == recipe
            resolve(recipe)


def check_settings(texts: Sequence[str], rng: random.Random) -> None:
    """As `check_recipes`, of settings as given on the command line."""
    for text in texts:
        with suppress(RecipeError):
            recipe = override(Recipe(), text.split("|"))
            assert parse(to_toml(recipe)) == recipe


def check_amplifications(texts: Sequence[str], rng: random.Random) -> None:
    """An amplification is refused with a RecipeError, or written so that it gives the same one."""
    for text in texts:
        with suppress(RecipeError):
            found = amplification.parse(text)
            assert amplification.parse(str(found)) == found
            assert 0 <= found.probability(0.7) <= 1


PARSERS = {
    "recipe": Target(
        Texts(
            [to_toml(presets.load(name)) for name in presets.names()], [*_NAMES, *_VALUES, *_WORDS, *_SIGNS]
        ),
        lambda: nullcontext(check_recipes),
        100,
    ),
    "setting": Target(
        Texts(
            [
                "match.threshold=0.8",
                "bands.count=40|bands.rows=3",
                "sketch.family=minhash",
                'shingle.stopwords=["a"]',
            ],
            [*_NAMES, *_VALUES, *_WORDS, *_SIGNS, "|"],
        ),
        lambda: nullcontext(check_settings),
        200,
    ),
    "amplification": Target(
        Texts(
            ["or(40, and(3))", "at_least(3, 40, and(3))", "and(4, or(4, and(2)))"],
            [*_STEPS, "é", "\n", "\udc80"],
        ),
        lambda: nullcontext(check_amplifications),
        2_000,
    ),
}
