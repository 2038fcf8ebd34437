"""Sets of shingles in plain Python, independent of the product: slow, and easy to verify."""

import unicodedata
from collections.abc import Iterable
from itertools import groupby

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.recipe import Recipe

_SPACES = ("Cc", "Zs", "Zl", "Zp")


def require_plain(recipe: Recipe) -> None:
    """Raise RecipeError unless `shingle_set` can read texts as the recipe does."""
    normal, shingle, cluster = recipe.normalise, recipe.shingle, recipe.cluster
    plain = (normal.unicode, normal.case, normal.whitespace) == ("none", "lower", "collapse")
    plain = plain and not normal.html and normal.invisible == "keep"
    words = shingle.scheme == "char" or (shingle.scheme == "word" and shingle.tokens == "whitespace")
    bare = (shingle.stopwords, shingle.stem, shingle.min_token_length) == ("none", "none", 1)
    plain = plain and recipe.fields == ("title", "body") and cluster.numbers_differ == "link"
    if not (plain and words and bare and recipe.match.verify == "exact" and cluster.linkage == "connected"):
        raise RecipeError(
            "the texts can be checked only for lowercased words parted by spaces, or characters, verified exactly and "
            "with linkage connected, as in recipes/w3.toml and c3.toml"
        )


def shingle_set(title: str | None, body: str | None, recipe: Recipe) -> frozenset[str]:
    """Return the distinct shingles of title and body; a text shorter than a shingle is one."""
    text = "\n".join(part for part in (title, body) if part).lower()
    words = ["".join(run) for of_word, run in groupby(text, key=_is_of_word) if of_word]
    k = recipe.shingle.k
    if recipe.shingle.scheme == "word":
        return _windows([f"{word} " for word in words], k)
    return _windows(list(" ".join(words)), k)


def _windows(units: list[str], k: int) -> frozenset[str]:
    starts: Iterable[int] = range(max(1, len(units) - k + 1)) if units else ()
    return frozenset("".join(units[start : start + k]) for start in starts)


def _is_of_word(character: str) -> bool:
    return unicodedata.category(character) not in _SPACES and character not in "\u200b\ufeff"
